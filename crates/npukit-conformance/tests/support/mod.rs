//! What the test files share.

use std::path::Path;

use npukit::Toolchain;
use npukit_conformance::suite::Suite;
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::Environment;

/// Runs a test on a started suite; says so and passes where there is no toolchain and none can be installed.
#[allow(unreachable_pub, reason = "each test file has its own copy")]
pub fn with_suite(test: impl FnOnce(&Suite<'_>, &Environment)) {
    let toolchain = Toolchain::from_environment().expect("a place for the toolchain");
    let environment = match toolchain.ensure(&mut Silent) {
        Ok(environment) => environment,
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let client = Path::new(env!("CARGO_BIN_EXE_conformance"));
    let suite = Suite::new(&environment, &npukit_testkit::repository(), client).expect("the suite starts");
    test(&suite, &environment);
}
