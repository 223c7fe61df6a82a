//! Decodes a trace.dat several times and prints events per second:
//! `cargo run --release --example throughput -- FILE`.

use std::path::Path;
use std::time::Instant;

use ftrace::{Counts, Item, TraceFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: throughput FILE")?;
    let opened = Instant::now();
    let file = TraceFile::open(Path::new(&path))?;
    println!("open: {:?}, {} formats, CPUs {:?}", opened.elapsed(), file.formats().len(), file.cpus());
    for _ in 0..3 {
        let start = Instant::now();
        let (mut events, mut holes, mut bytes) = (0_u64, 0_u64, 0_u64);
        let mut stream = file.stream()?;
        while let Some(item) = stream.next()? {
            match item {
                Item::Event(event) => {
                    events += 1;
                    bytes += event.data.len() as u64;
                }
                Item::Lost { .. } => holes += 1,
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let rate = events as f64 / seconds / 1e6;
        println!("{events} events ({bytes} bytes), {holes} holes: {seconds:.3} s, {rate:.1} M events/s");
    }
    let start = Instant::now();
    let counts = Counts::of(file.formats(), &mut file.stream()?)?;
    println!("counts: {} events of {} names in {:?}", counts.total, counts.events.len(), start.elapsed());
    Ok(())
}
