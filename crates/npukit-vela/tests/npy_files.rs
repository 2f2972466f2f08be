//! `.npy` and `.npz`: what NumPy writes is read, what is written NumPy reads, and damaged files are refused.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use npukit_vela::npy::{Array, Dtype, NpyError, Npz, write_npz};
use proptest::prelude::*;

/// Runs a program with the environment's Python, in `folder`.
fn python(folder: &Path, program: &str) {
    let environment = common::environment();
    let done =
        Command::new(environment.python()).arg("-c").arg(program).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

const DTYPES: [Dtype; 11] = [
    Dtype::Bool,
    Dtype::Int8,
    Dtype::Uint8,
    Dtype::Int16,
    Dtype::Uint16,
    Dtype::Int32,
    Dtype::Uint32,
    Dtype::Int64,
    Dtype::Uint64,
    Dtype::Float32,
    Dtype::Float64,
];

#[test]
fn what_numpy_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    python(
        folder.path(),
        "import numpy as np\n\
         for name in 'bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64'.split():\n\
         \x20 a = (np.arange(24).reshape(2, 3, 4) - 5).astype(name)\n\
         \x20 np.save(name, a); np.save(name + '-fortran', np.asfortranarray(a))\n\
         np.save('big', np.arange(3, dtype='>i2')); np.save('object', np.array([{}]), allow_pickle=True)\n\
         np.save('complex', np.zeros(2, complex)); np.save('record', np.zeros(2, [('a', 'i1')]))\n\
         np.save('scalar', np.float32(1.5)); np.save('empty', np.zeros((0, 7), np.int8)); np.save('one', np.arange(5.))\n\
         np.save('text', np.array(b'ab\\0\\0\\0')); np.save('wide', np.array(['x']))\n\
         np.savez('plain', first=np.arange(3), second=np.array(b'a\\0\\0')); np.savez_compressed('packed', z=np.zeros(100000))\n",
    );
    let read = |name: &str| Array::parse(&fs::read(folder.path().join(format!("{name}.npy"))).unwrap());
    for dtype in DTYPES {
        let array = read(&dtype.to_string()).unwrap();
        assert_eq!((array.dtype(), array.shape()), (dtype, &[2, 3, 4][..]));
        let expected: Vec<f64> = (0..24).map(|value| f64::from(value - 5)).collect();
        let signed =
            !matches!(dtype, Dtype::Bool | Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64);
        if signed {
            assert_eq!(array.to_f64().unwrap(), expected, "{dtype}");
        }
        assert_eq!(read(&format!("{dtype}-fortran")).unwrap(), array, "{dtype} in Fortran order");
    }
    assert_eq!(
        read("scalar").unwrap(),
        Array::new(Dtype::Float32, vec![], 1.5f32.to_le_bytes().into()).unwrap()
    );
    assert_eq!(read("empty").unwrap().shape(), [0, 7]);
    assert_eq!(read("one").unwrap().to_f64().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0]);
    // NumPy hides the zeros at the end of a byte string; the file has them.
    assert_eq!(read("text").unwrap().data(), b"ab\0\0\0");
    assert!(matches!(read("big"), Err(NpyError::BigEndian { .. })));
    for name in ["object", "complex", "record", "wide"] {
        assert!(matches!(read(name), Err(NpyError::Dtype { .. })), "{name}");
    }

    let file = fs::read(folder.path().join("plain.npz")).unwrap();
    let mut archive = Npz::open(&file).unwrap();
    assert_eq!(archive.names(), ["first", "second"]);
    assert_eq!(archive.read("first").unwrap().to_f64().unwrap(), [0.0, 1.0, 2.0]);
    assert_eq!(archive.read("second").unwrap().data(), b"a\0\0");
    let error = archive.read("third").unwrap_err();
    assert_eq!(error.to_string(), "no array 'third' in the archive (it has: first, second)");
    let file = fs::read(folder.path().join("packed.npz")).unwrap();
    assert!(file.len() < 10_000);
    assert_eq!(Npz::open(&file).unwrap().read("z").unwrap().elements(), 100_000);
}

#[test]
fn what_is_written_numpy_reads() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = common::Noise(3);
    let mut check = String::from("import numpy as np\n");
    let mut arrays = Vec::new();
    for dtype in DTYPES {
        for shape in [vec![], vec![4], vec![2, 3], vec![1, 0, 5], vec![1, 2, 3, 4, 5, 1]] {
            let bytes = shape.iter().product::<usize>() * dtype.bytes();
            let mut data = noise.bytes(bytes);
            if dtype == Dtype::Bool {
                data.iter_mut().for_each(|byte| *byte &= 1);
            }
            let name = format!("{dtype}-{}", shape.len());
            let array = Array::new(dtype, shape, data).unwrap();
            fs::write(folder.path().join(format!("{name}.npy")), array.to_npy()).unwrap();
            check += &format!(
                "a = np.load('{name}.npy'); assert a.dtype == '{dtype}' and a.shape == tuple({:?}), a\n\
                 assert a.tobytes().hex() == '{}', a\nassert open('{name}.npy', 'rb').read().find(b'\\n') % 64 == 63\n",
                array.shape(),
                array.data().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
            );
            arrays.push((name, array));
        }
    }
    let file = write_npz(arrays.iter().map(|(name, array)| (name.as_str(), array))).unwrap();
    assert_eq!(file, write_npz(arrays.iter().map(|(name, array)| (name.as_str(), array))).unwrap());
    fs::write(folder.path().join("all.npz"), &file).unwrap();
    check += &format!(
        "z = np.load('all.npz'); assert len(z.files) == {}\nassert z['int8-1'].tobytes() == np.load('int8-1.npy').tobytes()\n",
        arrays.len()
    );
    python(folder.path(), &check);
    let mut archive = Npz::open(&file).unwrap();
    for (name, array) in &arrays {
        assert_eq!(&archive.read(name).unwrap(), array);
    }
}

/// A file with this header text and this many bytes of zeros behind it.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.resize(file.len() + data, 0);
    file
}

#[test]
fn malformed_headers_are_refused() {
    let good = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }  \n";
    assert_eq!(Array::parse(&file(good, 12)).unwrap().shape(), [2, 3]);
    assert!(Array::parse(&file("{\"shape\":(6,),\"descr\":\"|u1\",\"fortran_order\":True}", 6)).is_ok());
    for (header, data) in [
        (good, 11),
        (good, 13),
        (good, 0),
        ("", 0),
        ("{", 0),
        ("{}", 0),
        ("{'descr': '<i2', 'fortran_order': False}", 0),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2), }", 4),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (-2,), }", 4),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2 3), }", 12),
        ("{'descr': '<i2', 'fortran_order': 0, 'shape': (2,), }", 4),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), } x", 4),
        ("{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", 4),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), 'more': 1}", 4),
        ("{'descr': '<i2, 'fortran_order': False, 'shape': (2,)}", 4),
        ("{'descr': '\\x3ci2', 'fortran_order': False, 'shape': (2,)}", 4),
        ("{'descr': '=i2', 'fortran_order': False, 'shape': (2,)}", 4),
        ("{'descr': '|i2', 'fortran_order': False, 'shape': (2,)}", 4),
        ("{'descr': '|S99999999999999999999', 'fortran_order': False, 'shape': ()}", 4),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4),
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (9223372036854775807, 4)}", 4),
        ("{'descr': '<i2', 'fortran_order': True, 'shape': (9223372036854775807, 4)}", 4),
    ] {
        assert!(Array::parse(&file(header, data)).is_err(), "{header:?} with {data} bytes");
    }
    // Sizes beyond counting are fine where there is nothing to count.
    for header in [
        "{'descr': '<i2', 'fortran_order': True, 'shape': (9223372036854775807, 4, 0)}",
        "{'descr': '|S0', 'fortran_order': False, 'shape': (9223372036854775807, 4)}",
    ] {
        let array = Array::parse(&file(header, 0));
        assert!(array.as_ref().is_ok_and(|array| array.data().is_empty()), "{header}: {array:?}");
        let _ = array.unwrap().elements();
    }
    let axes = "1, ".repeat(65);
    let header = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': ({axes})}}");
    assert!(Array::parse(&file(&header, 2)).is_err(), "65 axes");
    assert!(matches!(Array::parse(b"\x93NUMPX"), Err(NpyError::Magic { .. })));
    assert!(matches!(Array::parse(b"\x93NUMPY\x04\x00"), Err(NpyError::Version { major: 4, minor: 0 })));
    for cut in [&b"\x93NUMPY"[..], b"\x93NUMPY\x01\x00\xff", b"\x93NUMPY\x01\x00\xff\xff{"] {
        let error = Array::parse(cut).unwrap_err();
        assert!(matches!(error, NpyError::CutOff { .. }), "{error}");
        assert!(error.to_string().starts_with("the file ends "), "{error}");
    }
    assert_eq!(Array::parse(b"").unwrap_err().to_string(), "not a .npy file: it is empty");
    assert!(Npz::open(b"PK\x03\x04").is_err());
}

proptest! {
    #[test]
    fn arrays_survive_the_way_to_a_file_and_back(
        kind in 0..DTYPES.len(),
        shape in prop::collection::vec(0usize..5, 0..5),
        seed: u64,
    ) {
        let dtype = DTYPES[kind];
        let bytes = shape.iter().product::<usize>() * dtype.bytes();
        let array = Array::new(dtype, shape, common::Noise(seed).bytes(bytes)).unwrap();
        prop_assert_eq!(Array::parse(&array.to_npy()).unwrap(), array.clone());
        let file = write_npz([("a", &array)]).unwrap();
        prop_assert_eq!(Npz::open(&file).unwrap().read("a").unwrap(), array);
    }

    #[test]
    fn damaged_files_never_panic(at in 0usize..200, byte: u8, cut in 0usize..400) {
        let array = Array::new(Dtype::Int16, vec![2, 3, 4], vec![7; 48]).unwrap();
        for mut file in [array.to_npy(), write_npz([("a", &array)]).unwrap()] {
            let length = file.len();
            file[at % length] = byte;
            file.truncate(cut.max(1));
            let _ = Array::parse(&file);
            if let Ok(mut archive) = Npz::open(&file) {
                for name in archive.names() {
                    let _ = archive.read(&name);
                }
            }
        }
    }
}
