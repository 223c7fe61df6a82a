//! Just enough of the WebDriver protocol (W3C WebDriver 2; `goog:` parts: ChromeDriver) to look at
//! a page: start a headless browser with scripts on or off, open a file, ask for its layout, its
//! console and its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Programs that are one browser, by distribution.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const DRIVERS: [&str; 1] = ["chromedriver"];

/// A browser with one empty profile; both die with this value.
pub(crate) struct Browser {
    port: u16,
    session: String,
    driver: Child,
    /// The driver blocks when its output is not read.
    _said: BufReader<ChildStdout>,
    profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser of this window size.
    pub(crate) fn start(scripts: bool, width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new(program(&DRIVERS).unwrap())
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(driver.stdout.take().unwrap());
        let port = port(&mut said);
        let mut browser = Self { port, session: String::new(), driver, _said: said, profile };
        let answer = browser.call("POST", "/session", &browser.wanted(scripts, width, height));
        answer["sessionId"].as_str().expect("a session id").clone_into(&mut browser.session);
        // The browser's own first page asks for its parts; they are none of the report's.
        browser.ask("url", &json!({"url": "about:blank"}));
        browser.console();
        browser.requests();
        browser
    }

    fn wanted(&self, scripts: bool, width: u32, height: u32) -> Value {
        let mut args: Vec<String> = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--force-device-scale-factor=1",
            // Nothing leaves the machine, whatever the page asks for.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ]
        .map(str::to_owned)
        .to_vec();
        args.push(format!("--user-data-dir={}", self.profile.path().display()));
        args.push(format!("--window-size={width},{height}"));
        let setting = if scripts { 1 } else { 2 };
        json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "binary": program(&BROWSERS).unwrap(),
                "args": args,
                "prefs": {"profile.managed_default_content_settings.javascript": setting},
            },
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}})
    }

    /// Shows pages as on a screen of this size, light or dark: a window has a least width, a screen
    /// has none.
    pub(crate) fn emulate(&self, width: u32, height: u32, dark: bool) {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", &screen);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&self, file: &Path) {
        let url = format!("file://{}", file.canonicalize().unwrap().display());
        self.ask("url", &json!({"url": url}));
    }

    /// A command of the DevTools protocol.
    pub(crate) fn devtools(&self, command: &str, params: &Value) -> Value {
        self.ask("goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Console messages of the page, and of the browser about the page, since the last call.
    pub(crate) fn console(&self) -> Vec<String> {
        let said = self.ask("se/log", &json!({"type": "browser"}));
        let line = |entry: &Value| format!("{}: {}", entry["level"], entry["message"]);
        said.as_array().expect("a list of log entries").iter().map(line).collect()
    }

    /// The address of every request of the page since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        let said = self.ask("se/log", &json!({"type": "performance"}));
        let mut found = Vec::new();
        for entry in said.as_array().expect("a list of log entries") {
            let event: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            if event["message"]["method"] == "Network.requestWillBeSent" {
                found.push(event["message"]["params"]["request"]["url"].as_str().unwrap().to_owned());
            }
        }
        found
    }

    fn ask(&self, command: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}/{command}", self.session), body)
    }

    /// One request, one answer, one connection; the `value` of the answer.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // A hung browser must not hang the tests; a slow machine must not fail them.
        stream.set_read_timeout(Some(Duration::from_secs(180))).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let text = answer(&mut BufReader::new(stream));
        let value: Value = serde_json::from_slice(&text).expect("an answer in JSON");
        assert!(value["value"]["error"].is_null(), "{method} {path}: {}", value["value"]);
        value["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        // A driver that is asked to quit ends its browser; a killed one cannot, so it is asked
        // first.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = write!(stream, "GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The first of these programs that is installed.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Whether a browser and its driver are installed; where not, the test is skipped.
pub(super) fn have_browser() -> bool {
    for (names, package) in [(&BROWSERS[..], "chromium"), (&DRIVERS[..], "chromium-driver")] {
        if program(names).is_none() {
            println!("skipped: {} is missing (package {package})", names[0]);
            return false;
        }
    }
    true
}

/// The port that the driver says it listens on.
fn port(said: &mut impl BufRead) -> u16 {
    let mut all = String::new();
    while said.read_line(&mut all).unwrap() > 0 {
        let last = all.lines().last().unwrap_or_default();
        if let Some((_, number)) = last.split_once("started successfully on port ") {
            return number.trim_end_matches('.').parse().unwrap();
        }
    }
    panic!("chromedriver ended: {all}");
}

/// The body of an HTTP answer that carries its length.
fn answer(stream: &mut impl BufRead) -> Vec<u8> {
    let mut length = 0;
    let mut line = String::new();
    while stream.read_line(&mut line).unwrap() > 0 && line != "\r\n" {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    body
}
