use npukit_vela::toolchain::Toolchain;
use npukit_vela::compile::*;
use npukit_vela::progress::Silent;
use npukit_vela::*;
#[test]
fn install() {
    let t = Toolchain::from_environment().unwrap();
    let mut p = |l: &str| eprintln!("{l}");
    let e = t.ensure(&mut p).map_err(|e| format!("{e}\n{:?}", e.advice())).unwrap();
    let start=std::time::Instant::now();
    for m in npukit_testkit::MODELS.iter().chain(&["keyword_scrambled_8bit.tflite"]) {
        let net = std::fs::read(npukit_testkit::model(m).unwrap()).unwrap();
        for fmt in [OutputFormat::Tflite, OutputFormat::Raw] { for io in [distil::IoMode::Separate, distil::IoMode::Arena] {
            let mut o = BuildOptions::new(Accelerator::U55_128);
            o.io = io; o.output_format = fmt;
            match build(e.vela(), &net, &o, &mut Silent) {
                Ok(b) => eprintln!("{m} {fmt:?} {io} {} notes {:?} cycles {:?} {:?}", b.npub.len(), b.notes, b.compiled.summary.as_ref().and_then(|s| s.number("cycles_total")), b.compiled.extra_files.iter().map(|f| &f.0).collect::<Vec<_>>()),
                Err(x) => eprintln!("{m} {x}"),
            }
        }}
    }
    eprintln!("{:?}", start.elapsed());
    for m in std::env::var("MORE").unwrap_or_default().split_whitespace() {
        let net = std::fs::read(m).unwrap();
        for fmt in [OutputFormat::Tflite, OutputFormat::Raw] { for io in [distil::IoMode::Separate, distil::IoMode::Arena] {
            for a in [Accelerator::U55_128, Accelerator::U65_256] {
            let mut o = BuildOptions::new(a);
            o.io = io; o.output_format = fmt;
            match build(e.vela(), &net, &o, &mut Silent) {
                Ok(b) => {eprintln!("{m} {fmt:?} {io} {a} {} notes {:?}", b.npub.len(), b.notes); for t in &b.program.tensors { eprintln!("   {t:?}"); } eprintln!("{:?}", npub::Blob::parse(&b.npub).unwrap().regions()); },
                Err(x) => eprintln!("{m} {fmt:?} {io} {x}"),
            }
        }}}
    }
}
