//! The container's behaviour from outside: format, refusals, loading, tensor table, writer.

mod corruption;
mod framing;
mod loading;
mod malformed;
mod properties;
mod real;
mod sample;
mod tensors;
mod worked_example;
mod writing;
