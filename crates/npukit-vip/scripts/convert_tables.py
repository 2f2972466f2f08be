#!/usr/bin/env python3
"""Turns a raw export of ovxlib's I/O type tables (JSON) into the text form in ../data.

    scripts/convert_tables.py EXPORT.json ... --history TIM-VX/.git [--out ../data]

An export lists, for every BEGIN_IO_TYPE_DECL of one TIM-VX revision, the operator, file, line, blob, the commit
that last changed the file, the declared input and output counts, the row from which a hardware generation's
comment starts, and the rows as numbers. The text form keeps all of that, one table after another:

    table CONV2D 2 0 vsi_nn_op_conv2d.c:94      operator, inputs, outputs, file below `folder`, line
    blob 8e.. change 1bb1e07.. 2023-11-03       git blob, commit of the last change, its date
    since 1.1.74                                first published ovxlib version from which these rows stood unchanged
    sha256 e9d4..                               of the rows as little-endian 32-bit words
    hw 9.0.1                                    the rows below are for this generation or newer
    f16/f16 u8:asym/i8:sym_pc ...               rows; one cell per tensor, inputs first; `none` is an absent tensor

Every table is packed again from its text and must hash to the export's SHA-256 before anything is written.
"""
import argparse, hashlib, json, pathlib, re, struct, subprocess

# The commits of the TIM-VX history at which a new ovxlib was published, oldest first (include/vsi_nn_version.h).
PUBLISHED = [
    ("1.1.28", "7972af0"), ("1.1.30", "def53f4"), ("1.1.32", "3c59694"), ("1.1.33", "4d4bc08"), ("1.1.34", "81cc868"),
    ("1.1.37", "ed47c5c"), ("1.1.43", "20e27ed"), ("1.1.50", "7d88a66"), ("1.1.57", "ed162d0"), ("1.1.74", "6e38e64"),
    ("1.1.84", "32c5a61"), ("1.1.88", "1bb1e07"), ("1.2.2", "2d9e614"), ("1.2.6", "3b80968"), ("1.2.14", "c8b7c41"),
    ("1.2.22", "8494275"),
]
PREFIX = "src/tim/vx/internal/src/"


def names(export):
    types = {v: k.lower().replace("f8_", "fp8_") for k, v in export["vx_type"].items()}
    quants = {v: k.lower() for k, v in export["qnt_type"].items()}
    return types, quants


def cell_text(cell, types, quants):
    # The 0x8xx types overlap the quantisation bits: take the type whose bits fit and leave the rest to the quantisation.
    for base in sorted(types, reverse=True):
        quant = (cell ^ base) >> 8 if base < 0x100 else (cell & ~0x800) >> 8
        if (cell & 0xFF) == (base & 0xFF) and (base < 0x100) == (cell & 0x800 == 0) and quant in quants:
            return types[base] + (":" + quants[quant] if quant else "")
    raise SystemExit(f"no name for cell {cell:#x}")


def cell_number(text, types, quants):
    name, _, quant = text.partition(":")
    value = next(k for k, v in types.items() if v == name)
    return value | (next(k for k, v in quants.items() if v == quant) << 8 if quant else 0)


def declaration(history, commit, table):
    """The declaration's rows, comments and blanks removed; None where the file or the declaration isn't there."""
    shown = subprocess.run(["git", f"--git-dir={history}", "show", f"{commit}:{table['file']}"], capture_output=True, text=True)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", shown.stdout, flags=re.S)
    counts = rf"(?:{table['inputs']}|_INPUT_NUM),\s*(?:{table['outputs']}|_OUTPUT_NUM)"
    found = re.findall(rf"BEGIN_IO_TYPE_DECL\(\s*{table['op']},\s*{counts}\s*\)(.*?)END_IO_TYPE_DECL", text, re.S)
    return "".join(found[0].split()) if len(found) == 1 else None


def since(history, export, table):
    """The first published version from which the rows stood unchanged up to the export's."""
    last = next(i for i, (version, _) in enumerate(PUBLISHED) if version == export["ovxlib_version"])
    here = declaration(history, PUBLISHED[last][1], table)
    assert here, table["op"]
    while last > 0 and declaration(history, PUBLISHED[last - 1][1], table) == here:
        last -= 1
    return PUBLISHED[last][0]


def convert(path, out, history):
    raw = path.read_bytes()
    export = json.loads(raw)
    types, quants = names(export)
    lines = [
        "npukit-ovxlib-tables 1",
        "# Operator I/O type tables of ovxlib, the lower layer of VeriSilicon's TIM-VX. Facts taken from its sources",
        "# (Copyright (c) 2020-2023 Vivante Corporation, MIT licence) by scripts/convert_tables.py; not edited by hand.",
        f"source {export['repo']}", "licence MIT", f"revision {export['revision']}",
        f"ovxlib {export['ovxlib_version']}", f"origin-sha256 {hashlib.sha256(raw).hexdigest()}", f"folder {PREFIX}",
    ]
    for table in export["tables"]:
        assert table["file"].startswith(PREFIX) and table["revision"] == export["revision"]
        assert not table["zero_filled_rows"] and not table["conditional"]
        starts = {row: label for label, row in table["hw_generation_from_row"]}
        lines += ["", f"table {table['op']} {table['inputs']} {table['outputs']} {table['file'][len(PREFIX):]}:{table['line']}",
                  f"blob {table['blob']} change {table['last_change']} {table['last_change_date']}",
                  f"since {since(history, export, table)}", f"sha256 {table['table_sha256']}"]
        packed, pending = b"", ""
        for index, row in enumerate(table["rows"]):
            if index in starts:
                lines += [pending] * bool(pending) + [f"hw {starts[index]}"]
                pending = ""
            word = "/".join(cell_text(c, types, quants) for c in row)
            again = [cell_number(c, types, quants) for c in word.split("/")]
            packed += struct.pack(f"<{len(again)}I", *again)
            if len(pending) + len(word) > 116:
                lines.append(pending)
                pending = ""
            pending += (" " if pending else "") + word
        lines.append(pending)
        assert hashlib.sha256(packed).hexdigest() == table["table_sha256"], table["op"]
    target = out / f"ovxlib-{export['ovxlib_version']}.tables"
    target.write_text("\n".join(lines) + "\n")
    print(f"{target}: {len(export['tables'])} tables, {sum(t['row_count'] for t in export['tables'])} rows")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="converts raw exports of ovxlib's I/O type tables")
    parser.add_argument("exports", nargs="+", type=pathlib.Path)
    parser.add_argument("--history", required=True, type=pathlib.Path, help="git directory of a TIM-VX clone")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "data")
    arguments = parser.parse_args()
    for export in arguments.exports:
        convert(export, arguments.out, arguments.history)
