//! Installing the toolchain: with a stand-in for Python that is quick, and with the real pip where its words matter.
#![cfg(unix)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use npukit_vela::progress::Silent;
use npukit_vela::toolchain::{Settings, Toolchain, ToolchainError};

/// A shell script that answers as Python does to what the installer asks. `pip` is what its pip does; each run of it adds
/// a line to the file `pip-runs`.
fn fake_python(folder: &Path, version: &str, modules: &str, pip: &str) -> PathBuf {
    let inspect =
        r#"{"packages": {"ethos-u-vela": "5.2.0", "tflite-micro": "0"}, "vela_ini": "'"$here"'/vela.ini"}"#;
    let text = format!(
        r#"#!/bin/sh
log='{log}'
# An environment's interpreter is a link to this script.
here=$(dirname "$0")
case "$*" in
*find_spec*) echo {version}; echo "$0"; echo {modules};;
*"-m venv"*)
    for folder; do :; done
    mkdir -p "$folder/bin"; ln -s "$0" "$folder/bin/python"; echo '[Memory_Mode.A]' > "$folder/bin/vela.ini";;
*"-m pip install"*) echo run >> "$log/pip-runs"; {pip};;
*importlib.metadata*) echo 'chatter'; echo '{inspect}';;
*) echo "unexpected: $*" >&2; exit 9;;
esac
"#,
        log = folder.display()
    );
    common::script(folder, "fake-python", &text)
}

fn settings(folder: &Path, python: &Path) -> Settings {
    Settings { cache: Some(folder.join("cache")), python: Some(python.to_owned()), ..Settings::default() }
}

fn pip_runs(folder: &Path) -> usize {
    fs::read_to_string(folder.join("pip-runs")).unwrap_or_default().lines().count()
}

fn remains(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder.join("cache")).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.contains("building")).collect()
}

#[test]
fn it_is_installed_once_and_repaired_when_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let python =
        fake_python(folder.path(), "3.12.1", "1 1", "echo Downloading thing-1.0-py3-none-any.whl '(3 kB)'");
    let toolchain = Toolchain::new(settings(folder.path(), &python)).unwrap();
    let status = toolchain.status();
    assert!(!status.installed && status.vela.is_none() && status.packages.is_empty());

    let mut lines = Vec::new();
    let environment = toolchain.ensure(&mut |line: &str| lines.push(line.to_owned())).unwrap();
    assert!(lines.iter().any(|line| line.starts_with("installing the toolchain")), "{lines:?}");
    assert!(lines.iter().any(|line| line == "downloading thing 1.0 (3 kB)"), "{lines:?}");
    assert_eq!(environment.vela().version(), "5.2.0");
    assert_eq!(environment.vela().configurations().unwrap().memory_modes(), ["A"]);
    assert!(environment.has_tflm());
    drop(environment);
    toolchain.ensure(&mut |line: &str| panic!("there is nothing to do, but it says {line:?}")).unwrap();
    assert_eq!((pip_runs(folder.path()), remains(folder.path()).len()), (1, 0));
    let status = toolchain.status();
    assert!(status.installed);
    assert_eq!((status.python.as_deref(), status.vela.unwrap().version()), (Some("3.12.1"), "5.2.0"));

    // Where the lock can't be had because nothing can be written, what is there is used all the same. (Root may write
    // everywhere, so a folder stands in the lock's place.)
    let lock = toolchain.folder().with_extension("lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    toolchain.ensure(&mut Silent).unwrap();
    fs::remove_dir(&lock).unwrap();

    // Its Python goes away, as when the system replaces one version by another.
    fs::remove_file(toolchain.folder().join("bin/python")).unwrap();
    assert!(!toolchain.status().installed);
    toolchain.ensure(&mut Silent).unwrap();
    assert_eq!(pip_runs(folder.path()), 2);

    // `install` looks closer: a package that went missing is noticed.
    toolchain.install(&mut Silent).unwrap();
    assert_eq!(pip_runs(folder.path()), 2, "an intact environment stays");
    let marker = toolchain.folder().join("ready.json");
    let text = fs::read_to_string(&marker).unwrap();
    fs::write(&marker, text.replace("\"ethos-u-vela\"", "\"gone\": \"1\", \"ethos-u-vela\"")).unwrap();
    toolchain.install(&mut Silent).unwrap();
    assert_eq!(pip_runs(folder.path()), 3);
    // A marker that can't be read is none.
    fs::write(&marker, "{").unwrap();
    assert!(!toolchain.status().installed);
}

/// Not a test: what the processes do that tests start. The toolchain is described by the environment.
#[test]
#[ignore = "run by other tests, in a process of its own"]
fn process_that_ensures_the_toolchain() {
    let toolchain = Toolchain::from_environment().unwrap();
    match toolchain.ensure(&mut |line: &str| println!("progress: {line}")) {
        Ok(environment) => println!("ready: {}", environment.python().display()),
        Err(error) => println!("error: {error}\nadvice: {}", error.advice().unwrap_or_default()),
    }
}

/// Starts a process that ensures the toolchain in `cache`.
fn ensure_in_a_process(cache: &Path, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "process_that_ensures_the_toolchain",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    for name in ["NPUKIT_PYTHON", "NPUKIT_VELA", "NPUKIT_WHEELS", "PIP_FIND_LINKS"] {
        command.env_remove(name);
    }
    command.env("NPUKIT_CACHE", cache).envs(variables.iter().copied());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn output(child: Child) -> String {
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn two_processes_at_once_install_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let python = fake_python(folder.path(), "3.11.2", "1 1", "sleep 2");
    let variables = [("NPUKIT_PYTHON", python.to_str().unwrap())];
    let first = ensure_in_a_process(&cache, &variables);
    // The second comes while the first is installing.
    wait_for(&folder.path().join("pip-runs"));
    let second = ensure_in_a_process(&cache, &variables);
    let (first, second) = (output(first), output(second));
    for output in [&first, &second] {
        assert!(output.contains("ready: "), "{output}");
    }
    assert!(second.contains("progress: another npukit installs the toolchain; waiting"), "{second}");
    assert_eq!((pip_runs(folder.path()), remains(folder.path()).len()), (1, 0));
}

#[test]
fn many_processes_at_once_install_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let python = fake_python(folder.path(), "3.11.2", "1 1", "sleep 0.3");
    let variables = [("NPUKIT_PYTHON", python.to_str().unwrap())];
    let children: Vec<Child> = (0..6).map(|_| ensure_in_a_process(&cache, &variables)).collect();
    for child in children {
        let output = output(child);
        assert!(output.contains("ready: "), "{output}");
    }
    assert_eq!(pip_runs(folder.path()), 1);
}

#[test]
fn an_interrupted_install_is_no_install_and_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let pid = folder.path().join("pip-pid");
    let python = fake_python(
        folder.path(),
        "3.11.2",
        "1 1",
        &format!("echo $$ > '{}'; exec sleep 600", pid.display()),
    );
    let mut child = ensure_in_a_process(&cache, &[("NPUKIT_PYTHON", python.to_str().unwrap())]);
    wait_for(&pid);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(remains(folder.path()).len(), 1, "the kill left a half-made environment");

    // The pip of the killed process is still running; nothing waits for it.
    let python = fake_python(folder.path(), "3.11.2", "1 1", "true");
    let toolchain = Toolchain::new(settings(folder.path(), &python)).unwrap();
    assert!(!toolchain.status().installed);
    toolchain.ensure(&mut Silent).unwrap();
    assert!(toolchain.status().installed);
    assert_eq!(remains(folder.path()), Vec::<String>::new());
    Command::new("kill").arg(fs::read_to_string(&pid).unwrap().trim()).status().unwrap();
}

#[test]
fn a_failed_install_leaves_nothing() {
    let refuse = |pip: &str| {
        let folder = tempfile::tempdir().unwrap();
        let python = fake_python(folder.path(), "3.11.2", "1 1", pip);
        let toolchain = Toolchain::new(settings(folder.path(), &python)).unwrap();
        let error = toolchain.ensure(&mut Silent).unwrap_err();
        assert!(!toolchain.status().installed && remains(folder.path()).is_empty());
        error
    };
    let error = refuse("echo \"ERROR: [Errno 28] No space left on device\" >&2; exit 1");
    assert!(matches!(error, ToolchainError::DiskFull { .. }), "{error}");
    assert!(error.advice().unwrap().contains("NPUKIT_CACHE"));
    let error = refuse("echo something else >&2; exit 2");
    assert!(matches!(&error, ToolchainError::Step { ending, .. } if ending == "exit status 2"), "{error}");
    assert!(error.to_string().contains("something else"), "{error}");
}

#[test]
fn a_python_that_does_not_do_is_described() {
    let refuse = |version: &str, modules: &str| {
        let folder = tempfile::tempdir().unwrap();
        let python = fake_python(folder.path(), version, modules, "true");
        Toolchain::new(settings(folder.path(), &python)).unwrap().ensure(&mut Silent).unwrap_err()
    };
    let text = refuse("3.8.18", "1 1").to_string();
    assert!(text.contains("3.10 or newer") && text.contains("is Python 3.8.18"), "{text}");
    let text = refuse("hello", "1 1").to_string();
    assert!(text.contains("not Python: it answered \"hello\""), "{text}");
    let error = refuse("3.11.2", "1 0");
    assert!(error.to_string().contains("'ensurepip'"), "{error}");
    assert!(error.advice().unwrap().contains("apt install python3-venv"));
    assert!(refuse("3.11.2", "0 0").to_string().contains("'venv'"));

    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no-such-python");
    let toolchain = Toolchain::new(settings(folder.path(), &missing)).unwrap();
    let text = toolchain.ensure(&mut Silent).unwrap_err().to_string();
    assert!(text.contains("no-such-python: not found"), "{text}");
}

#[test]
fn a_python_that_all_packages_are_built_for_is_preferred() {
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    // What the stand-in runs.
    for program in ["sh", "dirname", "mkdir", "ln", "echo"] {
        let path = ["/bin", "/usr/bin"]
            .iter()
            .map(|place| Path::new(place).join(program))
            .find(|path| path.exists());
        std::os::unix::fs::symlink(path.unwrap(), programs.join(program)).unwrap();
    }
    let python = |name: &str, version: &str| {
        let made = fake_python(folder.path(), version, "1 1", "true");
        fs::rename(made, programs.join(name)).unwrap();
    };
    python("python3", "3.99.0");
    python("python3.12", "3.12.7");
    let cache = folder.path().join("cache");
    let run = || output(ensure_in_a_process(&cache, &[("PATH", programs.to_str().unwrap())]));
    let first = run();
    assert!(first.contains("from Python 3.12.7") && first.contains("ready: "), "{first}");
    // A newer one is better than none.
    fs::remove_dir_all(&cache).unwrap();
    fs::remove_file(programs.join("python3.12")).unwrap();
    let second = run();
    assert!(second.contains("from Python 3.99.0"), "{second}");
}

#[test]
fn no_python_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let child =
        ensure_in_a_process(&folder.path().join("cache"), &[("PATH", folder.path().to_str().unwrap())]);
    let output = output(child);
    assert!(
        output.contains("error: no usable Python (3.10 or newer); none was found on the search path"),
        "{output}"
    );
    assert!(output.contains("NPUKIT_PYTHON"), "{output}");
}

/// The real pip, with an index that doesn't answer: a closed port of this machine.
#[test]
fn without_a_network_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("PIP_INDEX_URL", "http://127.0.0.1:9/simple"),
        ("PIP_NO_CACHE_DIR", "1"),
        ("PIP_CONFIG_FILE", "/dev/null"),
    ];
    let output = output(ensure_in_a_process(&folder.path().join("cache"), &variables));
    assert!(
        output.contains("error: the package index can't be reached to install ethos-u-vela==5.2.0"),
        "{output}"
    );
    assert!(output.contains("last words:\n") && output.contains("No matching distribution"), "{output}");
    assert!(
        output.contains("advice: Connect to the network") && output.contains("NPUKIT_WHEELS"),
        "{output}"
    );
    assert_eq!(remains(folder.path()), Vec::<String>::new());
}

/// The real pip, with a folder of wheels that has none.
#[test]
fn a_wheel_folder_without_the_wheels_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let wheels = folder.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    let output = output(ensure_in_a_process(
        &folder.path().join("cache"),
        &[("NPUKIT_WHEELS", wheels.to_str().unwrap()), ("PIP_CONFIG_FILE", "/dev/null")],
    ));
    assert!(output.contains("error: there is no ethos-u-vela==5.2.0 for this Python and system"), "{output}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let settings = Settings { cache: Some(file.join("cache")), ..Settings::default() };
    let error = Toolchain::new(settings).unwrap().ensure(&mut Silent).unwrap_err();
    assert!(matches!(&error, ToolchainError::Folder { path, .. } if path.ends_with("cache")), "{error}");
}

#[test]
fn an_own_vela_takes_the_place_of_the_environments() {
    let folder = tempfile::tempdir().unwrap();
    let own = common::script(folder.path(), "my-vela", "#!/bin/sh\necho warning: old\necho 4.5.0\n");
    let python = fake_python(folder.path(), "3.11.2", "1 1", "true");
    let mut settings = settings(folder.path(), &python);
    settings.vela = Some(own);
    let toolchain = Toolchain::new(settings.clone()).unwrap();
    let (vela, environment) = toolchain.vela(&mut Silent).unwrap();
    assert!(environment.is_none(), "to compile with an own Vela nothing is installed");
    assert_eq!((vela.version(), vela.is_named_by_user()), ("4.5.0", true));
    let environment = toolchain.ensure(&mut Silent).unwrap();
    assert_eq!(environment.vela().version(), "4.5.0");
    assert_eq!(toolchain.status().vela.unwrap().version(), "4.5.0");

    settings.vela = Some(folder.path().join("absent"));
    let toolchain = Toolchain::new(settings).unwrap();
    assert!(matches!(toolchain.ensure(&mut Silent), Err(ToolchainError::Vela { .. })));
    let status = toolchain.status();
    assert!(status.vela.is_none() && status.vela_problem.unwrap().contains("absent"));
}

/// The environment that all other tests share is what the list says.
#[test]
fn the_real_environment_has_what_the_list_says() {
    let environment = common::environment();
    assert_eq!(environment.vela().version(), "5.2.0");
    for (package, version) in [("ai-edge-litert", "2.3.0"), ("flatbuffers", "25.12.19")] {
        assert_eq!(environment.packages().get(package).map(String::as_str), Some(version));
    }
    let ini = environment.vela().configurations().unwrap();
    assert!(ini.memory_modes().contains(&"Dedicated_Sram_384KB"));
    let mode = ini.memory_mode("Dedicated_Sram_384KB").unwrap();
    assert_eq!((mode.arena.as_str(), mode.arena_cache_bytes), ("Axi1", Some(384 << 10)));
    let system = ini.system_config("Ethos_U55_High_End_Embedded").unwrap();
    assert_eq!((system.core_clock_hz, system.axi1.memory.as_str()), (500e6, "OffChipFlash"));
}
