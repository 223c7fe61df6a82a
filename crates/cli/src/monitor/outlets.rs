//! Where a monitor's knowledge goes: metrics by HTTP to whoever asks, metrics in a file.
//!
//! The answer to HTTP is always the same: the metrics as they were at most some seconds ago. One
//! connection at a time, so many bytes and so long at most: whoever may connect can make scrapers
//! wait, and nothing else.

use super::options::{Listen, StartArgs};
use anyhow::Context;
use model::monitor::Status;
use model::store;
use report::export::{Format, monitor};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest request that is read.
const MOST_BYTES: usize = 8 << 10;
/// How long a client may take for it.
const MOST_TIME: Duration = Duration::from_secs(2);
/// The file in a textfile directory.
const TEXTFILE: &str = "stillcore.prom";

/// The status as it was last, and when, s since 1970.
type Last = Arc<Mutex<Option<(Status, f64)>>>;

/// The outlets.
pub(super) struct Outlets {
    last: Last,
    listener: Option<TcpListener>,
    address: Option<SocketAddr>,
    textfile: Option<PathBuf>,
}

impl Outlets {
    /// Opens them; nothing is given away yet.
    pub(super) fn open(args: &StartArgs) -> anyhow::Result<Self> {
        let listener = match args.listen {
            Listen::Nowhere => None,
            Listen::At(address) => {
                let taken =
                    || format!("--listen: cannot serve metrics at {address}; choose another, or none");
                Some(TcpListener::bind(address).with_context(taken)?)
            }
        };
        if let Some(dir) = args.textfile.as_deref().filter(|dir| !dir.is_dir()) {
            anyhow::bail!("--textfile {}: not there, expected a directory", dir.display());
        }
        let textfile = args.textfile.as_ref().map(|dir| dir.join(TEXTFILE));
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok(Self { last: Last::default(), listener, address, textfile })
    }

    /// Where metrics are served.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// This is how things stand. The first time it begins to serve, on a thread of its own that may
    /// run where this one may.
    pub(super) fn publish(&mut self, status: Status) -> anyhow::Result<()> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((status, now_s()));
        if let Some(listener) = self.listener.take() {
            let last = Arc::clone(&self.last);
            Builder::new().name("metrics".to_owned()).spawn(move || {
                for stream in listener.incoming() {
                    match stream {
                        Ok(stream) => drop(answer(stream, &last)),
                        // Out of descriptors, perhaps: not as fast as possible again.
                        Err(_) => std::thread::sleep(MOST_TIME),
                    }
                }
            })?;
        }
        Ok(())
    }

    /// Writes the file, where one is wanted.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        let Some(path) = &self.textfile else { return Ok(()) };
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let text = last.as_ref().map(|(status, now_s)| monitor(status, Format::Classic, *now_s));
        text.map_or(Ok(()), |text| Ok(store::write_whole(path, text.as_bytes())?))
    }
}

impl Drop for Outlets {
    /// Numbers that nobody keeps true any more are worse than none.
    fn drop(&mut self) {
        if let Some(path) = &self.textfile {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Answers one request, whatever it is for: HTTP/1.1 (RFC 9112), the connection closed behind it.
fn answer(mut stream: TcpStream, last: &Last) -> std::io::Result<()> {
    stream.set_write_timeout(Some(MOST_TIME))?;
    let Some(head) = head(&mut stream)? else { return stream.shutdown(Shutdown::Both) };
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => metrics(&head, last),
        ("GET" | "HEAD", "/") => ("200 OK", PLAIN, "stillcore monitor: metrics are at /metrics\n".to_owned()),
        ("GET" | "HEAD", _) => ("404 Not Found", PLAIN, "not found: metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", PLAIN, "only GET is answered\n".to_owned()),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { body.as_str() };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    stream.shutdown(Shutdown::Both)
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// The text that the scraper can read: OpenMetrics if it says so.
fn metrics(head: &str, last: &Last) -> (&'static str, &'static str, String) {
    let is_accept = |line: &&str| line.get(..7).is_some_and(|name| name.eq_ignore_ascii_case("accept:"));
    let open = head.lines().find(is_accept).is_some_and(|line| line.contains("application/openmetrics-text"));
    let (format, kind) = if open {
        (Format::Open, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    } else {
        (Format::Classic, "text/plain; version=0.0.4; charset=utf-8")
    };
    let last = last.lock().unwrap_or_else(PoisonError::into_inner);
    match last.as_ref() {
        Some((status, now_s)) => ("200 OK", kind, monitor(status, format, *now_s)),
        None => ("503 Service Unavailable", PLAIN, "nothing is known yet\n".to_owned()),
    }
}

/// The head of a request; `None` if it is too long, takes too long or is no text.
fn head(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let (begun, mut head, mut piece) = (Instant::now(), Vec::new(), [0; 1024]);
    loop {
        let Some(left) = MOST_TIME.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else {
            return Ok(None);
        };
        stream.set_read_timeout(Some(left))?;
        let read = match stream.read(&mut piece) {
            Ok(read) if read > 0 => read,
            // It has ended, or waited too long.
            _ => return Ok(None),
        };
        head.extend_from_slice(&piece[..read]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(String::from_utf8(head).ok());
        }
        if head.len() > MOST_BYTES {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is answered to these bytes before anything is known.
    fn answered(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(request).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let _ = answer(listener.accept().unwrap().0, &Last::default());
        let mut text = Vec::new();
        let _ = client.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_is_no_request_has_no_answer() {
        let long = [b"GET /metrics HTTP/1.1\r\nx: ", vec![b'x'; 2 * MOST_BYTES].as_slice()].concat();
        for request in [&b""[..], b"GET /metrics HTTP/1.1\r\n", b"\xff\xfe\r\n\r\n", &long] {
            assert_eq!(answered(request), "", "{:?}", &request[..request.len().min(30)]);
        }
        assert!(answered(b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
        assert!(answered(b"\r\n\r\n").starts_with("HTTP/1.1 405 "));
        let head = answered(b"HEAD / HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    }
}
