//! Sets of inputs from array files: one sample, a batch along the first axis, several files, a whole folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use npukit_vela::npy::{Array, NpyError, Npz};

use crate::tensor::{Misfit, TensorSpec};

/// One set of inputs and where it comes from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// The file, and the position in it where it holds several: `samples.npy[3]`.
    pub origin: String,
    /// One array for each input of the network.
    pub inputs: Vec<Array>,
}

/// Why array files give no inputs for a network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// A file or folder can't be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file isn't an array file.
    #[error("{}: {source}", path.display())]
    Npy {
        /// Which.
        path: PathBuf,
        /// Why.
        source: NpyError,
    },
    /// An array isn't what the network takes.
    #[error("{}: {source}", path.display())]
    Misfit {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: Misfit,
    },
    /// A folder has no array files.
    #[error("{}: no .npy or .npz file is in this folder", path.display())]
    EmptyFolder {
        /// Which.
        path: PathBuf,
    },
    /// A file has no samples.
    #[error("{}: it holds no samples", path.display())]
    NoSamples {
        /// Which.
        path: PathBuf,
    },
    /// `NAME=FILE` names no input.
    #[error("the network has no input '{name}' (it has {known})")]
    UnknownInput {
        /// The name.
        name: String,
        /// The inputs there are.
        known: String,
    },
    /// An input was given twice, or isn't given.
    #[error(
        "{problem}; the network takes {known}: give a file for each in this order or as NAME=FILE, or .npz files"
    )]
    Incomplete {
        /// The inputs' names.
        known: String,
        /// What is wrong.
        problem: String,
    },
    /// Two inputs have batches of different lengths.
    #[error("{first} has {first_samples} samples, {second} has {second_samples}")]
    Lengths {
        /// One file.
        first: String,
        /// How many samples it has.
        first_samples: usize,
        /// The other.
        second: String,
        /// How many it has.
        second_samples: usize,
    },
}

/// Reads the sets of inputs that arguments name, in their order.
///
/// For a network with one input each argument is a `.npy` file, a `.npz` archive or a folder of them, and gives one or
/// more samples. For a network with several inputs an argument is an `.npz` archive with an array for each input, by name
/// or in order, or a folder of them; or there is one `.npy` argument for each input, in order or as `NAME=FILE`.
///
/// An array is one sample if it has the input's shape, and a batch if it has any length where the input's shape begins
/// with 1, or one axis more than the input.
///
/// # Errors
/// [`BatchError`] names the file, what was found and what is expected.
pub fn read(arguments: &[PathBuf], inputs: &[TensorSpec]) -> Result<Vec<Sample>, BatchError> {
    let mut samples = Vec::new();
    let mut columns = Columns::new(inputs);
    for argument in arguments {
        let (input, path) = named(argument, inputs)?;
        for file in files(path)? {
            let bytes = npukit_files::read(&file, npukit_files::ARRAY_BYTES)
                .map_err(|source| BatchError::Read { path: file.clone(), source })?;
            let npy = |source| BatchError::Npy { path: file.clone(), source };
            if bytes.starts_with(b"PK") {
                let mut archive = Npz::open(&bytes).map_err(npy)?;
                samples.append(&mut archived(&file, &mut archive, inputs)?);
            } else {
                let array = Array::parse(&bytes).map_err(npy)?;
                if let ([only], None) = (inputs, input) {
                    samples.append(&mut zip(&[&Column::new(&file, array, only, 0)?])?);
                } else {
                    columns.add(&file, array, input)?;
                }
            }
        }
    }
    samples.append(&mut columns.samples()?);
    Ok(samples)
}

/// `NAME=FILE` where the network has such an input and there is no file of the whole name; else a plain file.
fn named<'p>(argument: &'p Path, inputs: &[TensorSpec]) -> Result<(Option<usize>, &'p Path), BatchError> {
    let Some((name, file)) = argument.to_str().and_then(|text| text.split_once('=')) else {
        return Ok((None, argument));
    };
    if argument.exists() {
        return Ok((None, argument));
    }
    if file.is_empty() {
        return Ok((None, argument));
    }
    match inputs.iter().position(|input| input.name == name) {
        Some(index) => Ok((Some(index), Path::new(file))),
        None => Err(BatchError::UnknownInput { name: name.to_owned(), known: names(inputs) }),
    }
}

fn names(inputs: &[TensorSpec]) -> String {
    inputs.iter().map(|input| format!("'{}'", input.name)).collect::<Vec<_>>().join(", ")
}

/// A file itself; a folder's array files in the order of their names. Folders in it and hidden files, such as those in
/// which macOS keeps attributes, aren't meant.
fn files(path: &Path) -> Result<Vec<PathBuf>, BatchError> {
    let read = |source| BatchError::Read { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(read)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(read)? {
        let file = entry.map_err(read)?.path();
        let extension =
            file.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        let hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if matches!(extension.as_deref(), Some("npy" | "npz")) && !hidden && !file.is_dir() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(BatchError::EmptyFolder { path: path.to_owned() });
    }
    files.sort();
    Ok(files)
}

/// The samples of one input from one file.
struct Column {
    path: PathBuf,
    samples: Vec<Array>,
}

impl Column {
    fn new(path: &Path, array: Array, spec: &TensorSpec, index: usize) -> Result<Column, BatchError> {
        let samples = split(array, spec, &spec.label("input", index))
            .map_err(|source| BatchError::Misfit { path: path.to_owned(), source })?;
        if samples.is_empty() {
            return Err(BatchError::NoSamples { path: path.to_owned() });
        }
        Ok(Column { path: path.to_owned(), samples })
    }
}

/// Cuts a batch into samples of the tensor's own shape.
fn split(array: Array, spec: &TensorSpec, label: &str) -> Result<Vec<Array>, Misfit> {
    spec.check_type(&array, label)?;
    if array.shape() == spec.shape {
        return Ok(vec![array]);
    }
    let batch = match array.shape().split_first() {
        Some((&batch, rest)) if rest == spec.shape || spec.shape.split_first() == Some((&1, rest)) => batch,
        _ => {
            return Err(Misfit::Shape {
                tensor: label.to_owned(),
                found: array.shape().to_vec(),
                expected: spec.shape.clone(),
            });
        }
    };
    let bytes = spec.bytes();
    let sample = |index: usize| {
        let data = array.data()[index * bytes..(index + 1) * bytes].to_vec();
        Array::new(array.dtype(), spec.shape.clone(), data)
            .expect("a part of the batch has the tensor's size")
    };
    Ok((0..batch).map(sample).collect())
}

/// Columns of equal length, turned into samples.
fn zip(columns: &[&Column]) -> Result<Vec<Sample>, BatchError> {
    let Some(first) = columns.first() else { return Ok(Vec::new()) };
    for other in &columns[1..] {
        if other.samples.len() != first.samples.len() {
            return Err(BatchError::Lengths {
                first: first.path.display().to_string(),
                first_samples: first.samples.len(),
                second: other.path.display().to_string(),
                second_samples: other.samples.len(),
            });
        }
    }
    let file = first.path.display();
    let sample = |index: usize| Sample {
        origin: if first.samples.len() == 1 { file.to_string() } else { format!("{file}[{index}]") },
        inputs: columns.iter().map(|column| column.samples[index].clone()).collect(),
    };
    Ok((0..first.samples.len()).map(sample).collect())
}

/// The samples of an archive: arrays by the inputs' names, or as many arrays as inputs in the archive's order.
fn archived(path: &Path, archive: &mut Npz<'_>, inputs: &[TensorSpec]) -> Result<Vec<Sample>, BatchError> {
    let present = archive.names();
    if present.is_empty() {
        return Err(BatchError::NoSamples { path: path.to_owned() });
    }
    let by_name = inputs.iter().all(|input| present.contains(&input.name));
    if !by_name && present.len() != inputs.len() {
        return Err(BatchError::Incomplete {
            known: names(inputs),
            problem: format!("{}: its arrays are {}", path.display(), present.join(", ")),
        });
    }
    let mut columns = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let name = if by_name { &input.name } else { &present[index] };
        let array = archive.read(name).map_err(|source| BatchError::Npy { path: path.to_owned(), source })?;
        columns.push(Column::new(path, array, input, index)?);
    }
    zip(&columns.iter().collect::<Vec<_>>())
}

/// The `.npy` files of a network with several inputs, one file for each.
struct Columns<'s> {
    inputs: &'s [TensorSpec],
    found: Vec<Option<Column>>,
}

impl<'s> Columns<'s> {
    fn new(inputs: &'s [TensorSpec]) -> Columns<'s> {
        Columns { inputs, found: inputs.iter().map(|_| None).collect() }
    }

    fn add(&mut self, path: &Path, array: Array, input: Option<usize>) -> Result<(), BatchError> {
        let next = input.or_else(|| self.found.iter().position(Option::is_none));
        let free = next.filter(|&index| self.found[index].is_none());
        let Some(index) = free else {
            return Err(self.incomplete(format!("{} is one too many", path.display())));
        };
        self.found[index] = Some(Column::new(path, array, &self.inputs[index], index)?);
        Ok(())
    }

    fn incomplete(&self, problem: String) -> BatchError {
        BatchError::Incomplete { known: names(self.inputs), problem }
    }

    fn samples(self) -> Result<Vec<Sample>, BatchError> {
        if self.found.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        if let Some(missing) = self.found.iter().position(Option::is_none) {
            return Err(
                self.incomplete(format!("{} is missing", self.inputs[missing].label("input", missing)))
            );
        }
        zip(&self.found.iter().flatten().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use npub::DType;
    use npukit_vela::npy::{Dtype, write_npz};

    use super::*;

    fn spec(name: &str, shape: &[usize]) -> TensorSpec {
        TensorSpec::new(name, DType::Int8, shape.to_vec(), None)
    }

    fn array(shape: &[usize]) -> Array {
        let data = (0..shape.iter().product::<usize>()).map(|value| value as u8).collect();
        Array::new(Dtype::Int8, shape.to_vec(), data).unwrap()
    }

    fn file(folder: &Path, name: &str, shape: &[usize]) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, array(shape).to_npy()).unwrap();
        path
    }

    #[test]
    fn batches_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = [spec("x", &[1, 2, 2])];
        for (shape, samples) in [(&[1, 2, 2][..], 1), (&[3, 2, 2], 3), (&[3, 1, 2, 2], 3), (&[1, 1, 2, 2], 1)]
        {
            let path = file(folder.path(), "a.npy", shape);
            let read = read(std::slice::from_ref(&path), &inputs).unwrap();
            assert_eq!(read.len(), samples, "{shape:?}");
            let last = read.last().unwrap();
            assert_eq!(last.inputs[0].shape(), [1, 2, 2]);
            assert_eq!(last.inputs[0].data()[0] as usize, 4 * (samples - 1));
        }
        for shape in [&[2, 2][..], &[4], &[1, 2, 3], &[2, 2, 2, 2], &[]] {
            let path = file(folder.path(), "a.npy", shape);
            let error = read(&[path], &inputs).unwrap_err();
            assert!(error.to_string().contains("expected (1, 2, 2)"), "{error}");
        }
        assert!(matches!(
            read(&[file(folder.path(), "a.npy", &[0, 2, 2])], &inputs),
            Err(BatchError::NoSamples { .. })
        ));
    }

    #[test]
    fn folders_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = [spec("x", &[1, 2])];
        let argument = [folder.path().to_owned()];
        assert!(matches!(read(&argument, &inputs), Err(BatchError::EmptyFolder { .. })));
        for (name, batch) in [("b.npy", 1), ("a.npy", 2), ("c.NPY", 1)] {
            file(folder.path(), name, &[batch, 2]);
        }
        fs::write(folder.path().join("labels.txt"), "0").unwrap();
        fs::write(folder.path().join("._a.npy"), "attributes").unwrap();
        fs::create_dir(folder.path().join("folder.npy")).unwrap();
        let origins: Vec<String> =
            read(&argument, &inputs).unwrap().into_iter().map(|sample| sample.origin).collect();
        let name = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(origins, [name("a.npy") + "[0]", name("a.npy") + "[1]", name("b.npy"), name("c.NPY")]);
    }

    #[test]
    fn several_inputs_by_order_name_and_archive() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = [spec("x", &[1, 2]), spec("y", &[1, 3])];
        let (x, y) = (file(folder.path(), "x.npy", &[4, 2]), file(folder.path(), "y.npy", &[4, 3]));
        assert_eq!(read(&[x.clone(), y.clone()], &inputs).unwrap().len(), 4);
        let named = [format!("y={}", y.display()).into(), format!("x={}", x.display()).into()];
        assert_eq!(
            read(&named, &inputs).unwrap(),
            read(&[x.clone(), y.clone()], &inputs)
                .unwrap()
                .into_iter()
                .map(|mut sample| {
                    sample.origin = sample.origin.replace("y.npy", "x.npy");
                    sample
                })
                .collect::<Vec<_>>()
        );
        let text = |arguments: &[PathBuf]| read(arguments, &inputs).unwrap_err().to_string();
        assert!(text(std::slice::from_ref(&x)).contains("input 'y' is missing"));
        assert!(text(&[x.clone(), y.clone(), y.clone()]).contains("one too many"));
        assert!(text(&["z=a.npy".into()]).contains("no input 'z'"));
        assert!(text(&["x=".into()]).starts_with("x=: "));
        assert!(text(&[x.clone(), file(folder.path(), "y2.npy", &[3, 3])]).ends_with("has 3"));

        let archive = folder.path().join("both.npz");
        fs::write(&archive, write_npz([]).unwrap()).unwrap();
        assert!(text(std::slice::from_ref(&archive)).contains("no samples"));
        let (a, b) = (array(&[5, 2]), array(&[5, 3]));
        fs::write(&archive, write_npz([("y", &b), ("x", &a)]).unwrap()).unwrap();
        let sample = &read(std::slice::from_ref(&archive), &inputs).unwrap()[4];
        assert_eq!(
            sample.inputs.iter().map(|input| input.shape().to_vec()).collect::<Vec<_>>(),
            [[1, 2], [1, 3]]
        );
        fs::write(&archive, write_npz([("arr_0", &a), ("arr_1", &b)]).unwrap()).unwrap();
        assert_eq!(read(std::slice::from_ref(&archive), &inputs).unwrap().len(), 5);
        fs::write(&archive, write_npz([("arr_0", &a)]).unwrap()).unwrap();
        assert!(text(&[archive]).contains("its arrays are arr_0"));
    }

    #[test]
    fn the_elements_type_is_told_before_the_shape() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.npy");
        fs::write(&path, Array::new(Dtype::Float32, vec![9], vec![0; 36]).unwrap().to_npy()).unwrap();
        let error = read(&[path], &[spec("x", &[1, 2])]).unwrap_err().to_string();
        assert!(error.ends_with("input 'x': the elements are float32, expected int8"), "{error}");
    }
}
