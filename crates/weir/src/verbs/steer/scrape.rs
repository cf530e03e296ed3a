//! A minimal HTTP server for scrapers: one answer a connection, each within a time limit, so that a slow
//! scraper delays no other.

use std::io::{self, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time of a request or an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest head of a request.
const LONGEST: usize = 8 << 10;
/// Scrapers at a time; further ones are refused.
const AT_ONCE: usize = 8;

/// Serves the text of `text` as long as the process lives. Returns the address.
///
/// # Errors
/// The port is taken, or is not permitted.
pub fn serve(
    at: SocketAddr,
    text: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(at)?;
    let bound = listener.local_addr()?;
    let text = Arc::new(text);
    let busy = Arc::new(AtomicUsize::new(0));
    thread::Builder::new()
        .name("weir-metrics".into())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                if busy.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
                    busy.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (text, done) = (Arc::clone(&text), Arc::clone(&busy));
                let answering =
                    thread::Builder::new()
                        .name("weir-scrape".into())
                        .spawn(move || {
                            // A scraper that disconnects loses only its own answer.
                            let _ = answer(&stream, &*text);
                            done.fetch_sub(1, Ordering::Relaxed);
                        });
                if answering.is_err() {
                    busy.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
    Ok(bound)
}

fn answer(mut stream: &TcpStream, text: &dyn Fn() -> String) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = head(stream)?;
    let mut words = request.split(' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        (Some("GET"), "/metrics") => (
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            text(),
        ),
        (Some("GET"), _) => ("404 Not Found", "text/plain", "see /metrics\n".to_owned()),
        _ => (
            "405 Method Not Allowed",
            "text/plain",
            "GET alone\n".to_owned(),
        ),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The first line of a request, whose head is read to its end.
fn head(mut stream: &TcpStream) -> io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let mut read = Vec::new();
    let mut part = [0; 1024];
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || read.len() > LONGEST {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => read.extend_from_slice(&part[..n]),
        }
    }
    let line = read.split(|&b| b == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(at: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        // A server that refuses may reset the connection.
        let _ = stream.read_to_string(&mut text);
        text
    }

    #[test]
    fn metrics_are_served_and_nothing_else() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let at = serve(any, || "weir 1\n# EOF\n".into()).unwrap();
        let good = ask(at, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            good.starts_with("HTTP/1.1 200") && good.ends_with("# EOF\n"),
            "{good}"
        );
        assert!(ask(at, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(at, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(serve(at, String::new).is_err(), "the port is taken");
    }

    #[test]
    fn who_says_nothing_keeps_nobody_waiting() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let at = serve(any, || "x".into()).unwrap();
        let slow = TcpStream::connect(at).unwrap();
        assert!(ask(at, "GET /metrics HTTP/1.1\r\n\r\n").ends_with('x'));
        drop(slow);
    }
}
