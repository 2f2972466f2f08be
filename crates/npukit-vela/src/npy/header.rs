//! The header of a `.npy` file: a Python dictionary in text.

use super::{ALIGNMENT, Array, Dtype, MAGIC, MAXIMUM_RANK, NpyError};

pub(super) struct Header<'a> {
    pub(super) dtype: Dtype,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
    /// What comes behind the header.
    pub(super) data: &'a [u8],
}

/// Splits a file into its header and its data.
pub(super) fn parse(file: &[u8]) -> Result<Header<'_>, NpyError> {
    let magic = file.get(..6).unwrap_or(file);
    if magic != MAGIC {
        return Err(NpyError::Magic { found: magic.to_vec() });
    }
    let version = file.get(6..8).ok_or(NpyError::CutOff { place: "before its version" })?;
    // Version 1 has a 16-bit length, versions 2 and 3 a 32-bit one; 3 says the text is UTF-8 rather than Latin-1.
    let (start, length) = match (version[0], version[1]) {
        (1, 0) => (10, file.get(8..10).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))),
        (2 | 3, 0) => (
            12,
            file.get(8..12)
                .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize),
        ),
        (major, minor) => return Err(NpyError::Version { major, minor }),
    };
    let length = length.ok_or(NpyError::CutOff { place: "before its header's length" })?;
    let end = start + length;
    let text = file.get(start..end).ok_or(NpyError::CutOff { place: "inside its header" })?;
    let (dtype, fortran_order, shape) = Parser { text, at: 0 }.dictionary()?;
    Ok(Header { dtype, fortran_order, shape, data: &file[end..] })
}

/// Writes an array with a version 1.0 header.
pub(super) fn write(array: &Array) -> Vec<u8> {
    let axes: Vec<String> = array.shape.iter().map(ToString::to_string).collect();
    let shape = match axes.as_slice() {
        [only] => format!("({only},)"),
        several => format!("({})", several.join(", ")),
    };
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", array.dtype.descr());
    // Spaces up to a line feed, so that the data is aligned. 64 axes of 20 digits stay far below 16 bits.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded));
    header.push('\n');
    let length = u16::try_from(header.len()).unwrap_or(u16::MAX);
    let mut file = Vec::with_capacity(MAGIC.len() + 4 + header.len() + array.data.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&[1, 0]);
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&array.data);
    file
}

/// Reads the one dictionary the format allows.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn error(&self, problem: &'static str) -> NpyError {
        let header = String::from_utf8_lossy(&self.text[..self.text.len().min(200)]).trim_end().to_owned();
        NpyError::Header { problem, offset: self.at, header }
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), NpyError> {
        if self.accept(byte) { Ok(()) } else { Err(self.error(problem)) }
    }

    fn string(&mut self) -> Result<String, NpyError> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.error("expected a string")),
        };
        self.at += 1;
        let start = self.at;
        while let Some(&byte) = self.text.get(self.at) {
            if byte == b'\\' {
                return Err(self.error("an escape in a string"));
            }
            self.at += 1;
            if byte == quote {
                return Ok(String::from_utf8_lossy(&self.text[start..self.at - 1]).into_owned());
            }
        }
        Err(self.error("a string without an end"))
    }

    fn word(&mut self) -> &[u8] {
        self.peek();
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_alphanumeric) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn axis(&mut self) -> Result<usize, NpyError> {
        let word = self.word();
        let number =
            std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|word| word.parse().ok());
        number.ok_or_else(|| self.error("expected the size of an axis"))
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect(b'(', "expected a tuple")?;
        let mut shape = Vec::new();
        while !self.accept(b')') {
            if shape.len() == MAXIMUM_RANK {
                return Err(self.error("too many axes"));
            }
            shape.push(self.axis()?);
            if !self.accept(b',') {
                self.expect(b')', "expected ',' or ')'")?;
                if shape.len() == 1 {
                    return Err(self.error("a shape that isn't a tuple"));
                }
                break;
            }
        }
        Ok(shape)
    }

    fn dictionary(mut self) -> Result<(Dtype, bool, Vec<usize>), NpyError> {
        let (mut dtype, mut order, mut shape) = (None, None, None);
        self.expect(b'{', "expected a dictionary")?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':', "expected ':'")?;
            let fresh = match key.as_str() {
                "descr" => {
                    if self.peek() == Some(b'[') {
                        return Err(NpyError::Dtype { dtype: "a record".into() });
                    }
                    dtype.replace(Dtype::from_descr(&self.string()?)?).is_none()
                }
                "fortran_order" => {
                    let value = match self.word() {
                        b"True" => true,
                        b"False" => false,
                        _ => return Err(self.error("expected True or False")),
                    };
                    order.replace(value).is_none()
                }
                "shape" => shape.replace(self.shape()?).is_none(),
                _ => return Err(self.error("an unknown key")),
            };
            if !fresh {
                return Err(self.error("a key that comes twice"));
            }
            if !self.accept(b',') {
                self.expect(b'}', "expected ',' or '}'")?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err(self.error("text behind the dictionary"));
        }
        match (dtype, order, shape) {
            (Some(dtype), Some(order), Some(shape)) => Ok((dtype, order, shape)),
            _ => Err(self.error("a missing key")),
        }
    }
}
