//! The processes around a job that reads from a pipe: a reader, which copies the input file into
//! it, and a writer, which compares what comes out with the expected outputs (ERTS 2022, §II-A).
//! Both begin the file anew at its end.

use super::files::Pair;
use super::{INPUT_BYTES, Input, OUTPUT_BYTES, Output, bytes_of, words_of};
use model::Cpus;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use sys::{sched, spawn};

/// Where a job's inputs come from.
pub enum Source {
    /// Both files in memory.
    Memory(Vec<Input>, Vec<Output>),
    /// A read(2) of each file a job.
    Files(File, File),
    /// Pipes, with a process at the other end of each.
    Pipes(Pipes),
}

/// The pipes and their processes.
pub struct Pipes {
    input: ChildStdout,
    output: Option<ChildStdin>,
    reader: Child,
    writer: Child,
}

/// How many outputs were compared, and how many were wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compared {
    /// Compared.
    pub compared: u64,
    /// Not as expected.
    pub wrong: u64,
}

impl Compared {
    #[inline]
    fn add(&mut self, right: bool) {
        self.compared += 1;
        self.wrong += u64::from(!right);
    }
}

impl Source {
    /// Both files as a whole.
    pub fn memory(files: &Pair) -> io::Result<Self> {
        let (inputs, expected) = (std::fs::read(&files.inputs)?, std::fs::read(&files.expected)?);
        Ok(Self::Memory(
            inputs.chunks_exact(INPUT_BYTES).map(words_of).collect(),
            expected.chunks_exact(OUTPUT_BYTES).map(words_of).collect(),
        ))
    }

    /// Both files, open.
    pub fn files(files: &Pair) -> io::Result<Self> {
        Ok(Self::Files(File::open(&files.inputs)?, File::open(&files.expected)?))
    }

    /// Starts the two processes, from the program that this process runs.
    pub fn pipes(files: &Pair, cpus: &Cpus) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let child = |verb: &str, file: &Path| {
            let mut command = Command::new(&program);
            command.args(["internal", verb]).arg(file).arg(cpus.to_string()).stderr(Stdio::null());
            spawn::die_with_parent(&mut command);
            command
        };
        let mut reader =
            child("job-reader", &files.inputs).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut writer =
            child("job-writer", &files.expected).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = reader.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let output = writer.stdin.take();
        Ok(Self::Pipes(Pipes { input, output, reader, writer }))
    }

    /// The input of a step. An error where the other end of the pipe is gone.
    #[inline]
    pub fn take(&mut self, step: u64) -> io::Result<Input> {
        let mut bytes = [0u8; INPUT_BYTES];
        match self {
            Self::Memory(inputs, _) => return Ok(inputs[step as usize % inputs.len()]),
            Self::Files(inputs, _) => {
                inputs.read_exact_at(&mut bytes, step % super::STEPS * INPUT_BYTES as u64)?;
            }
            Self::Pipes(pipes) => pipes.input.read_exact(&mut bytes)?,
        }
        Ok(words_of(&bytes))
    }

    /// Compares a step's output with the expected one, or hands it to the process that does.
    #[inline]
    pub fn give(&mut self, step: u64, output: &Output, compared: &mut Compared) -> io::Result<()> {
        let mut bytes = [0u8; OUTPUT_BYTES];
        match self {
            Self::Memory(_, expected) => compared.add(expected[step as usize % expected.len()] == *output),
            Self::Files(_, expected) => {
                expected.read_exact_at(&mut bytes, step % super::STEPS * OUTPUT_BYTES as u64)?;
                compared.add(words_of(&bytes) == *output);
            }
            Self::Pipes(pipes) => {
                bytes_of(output, &mut bytes);
                pipes.output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&bytes)?;
            }
        }
        Ok(())
    }

    /// Ends the processes and takes the writer's count.
    pub fn close(self, compared: &mut Compared) -> io::Result<()> {
        let Self::Pipes(mut pipes) = self else { return Ok(()) };
        drop(pipes.output.take());
        let mut said = String::new();
        if let Some(mut stdout) = pipes.writer.stdout.take() {
            stdout.read_to_string(&mut said)?;
        }
        drop(pipes.input);
        let _ = pipes.reader.kill();
        let _ = pipes.reader.wait();
        let _ = pipes.writer.wait();
        let counts: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [all, wrong] = counts[..] else {
            return Err(io::Error::other("the process that compares the outputs ended without its count"));
        };
        (compared.compared, compared.wrong) = (all, wrong);
        Ok(())
    }
}

/// The reader process: the file into `pipe`, again and again, until nobody reads any more.
pub fn read_into(file: &Path, cpus: &str, pipe: &mut impl Write) -> io::Result<()> {
    enter(cpus)?;
    let mut file = File::open(file)?;
    let mut bytes = [0u8; INPUT_BYTES];
    loop {
        match file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && file.stream_position()? > 0 => {
                file.rewind()?;
                continue;
            }
            Err(error) => return Err(error),
        }
        match pipe.write_all(&bytes).and_then(|()| pipe.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            result => result?,
        }
    }
}

/// The writer process: compares the output of `pipe` with the file until the pipe is closed, then
/// writes `compared wrong`.
pub fn compare_from(file: &Path, cpus: &str, pipe: &mut impl Read, sink: &mut impl Write) -> io::Result<()> {
    enter(cpus)?;
    let mut file = File::open(file)?;
    let mut compared = Compared::default();
    let (mut output, mut expected) = ([0u8; OUTPUT_BYTES], [0u8; OUTPUT_BYTES]);
    while pipe.read_exact(&mut output).is_ok() {
        if file.read_exact(&mut expected).is_err() {
            file.rewind()?;
            file.read_exact(&mut expected)?;
        }
        compared.add(output == expected);
    }
    writeln!(sink, "{} {}", compared.compared, compared.wrong)
}

fn enter(cpus: &str) -> io::Result<()> {
    let cpus: Cpus = cpus.parse().map_err(|error| io::Error::other(format!("{error}")))?;
    sched::pin(&cpus)
}

#[cfg(test)]
mod tests {
    use super::super::files::JobFiles;
    use super::super::{STEPS, Work, input};
    use super::*;

    /// Takes so many bytes, then refuses as a pipe without reader does.
    struct Short(Vec<u8>, usize);

    impl Write for Short {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() >= self.1 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn here() -> String {
        sched::affinity().unwrap().to_string()
    }

    #[test]
    fn the_reader_begins_the_file_anew() {
        let place = tempfile::tempdir().unwrap();
        let files = JobFiles::create(place.path(), Work::Empty, 1, None).unwrap();
        let mut pipe = Short(Vec::new(), (STEPS as usize + 2) * INPUT_BYTES);
        read_into(&files.copies[0].files.inputs, &here(), &mut pipe).unwrap();
        let last = words_of::<8>(&pipe.0[pipe.0.len() - INPUT_BYTES..]);
        assert_eq!(last, input(1));
    }

    #[test]
    fn wrong_outputs_are_counted_wherever_they_are_compared() {
        let place = tempfile::tempdir().unwrap();
        let files = JobFiles::create(place.path(), Work::Empty, 1, None).unwrap();
        let pair = &files.copies[0].files;
        let outputs = std::fs::read(&pair.expected).unwrap();
        let mut given = [outputs.clone(), outputs[..3 * OUTPUT_BYTES].to_vec()].concat();
        given[5 * OUTPUT_BYTES] ^= 1;
        given[outputs.len()] ^= 1;
        let mut counts = Vec::new();
        compare_from(&pair.expected, &here(), &mut &given[..], &mut counts).unwrap();
        assert_eq!(String::from_utf8(counts).unwrap(), format!("{} 2\n", STEPS + 3));
        for mut source in [Source::memory(pair).unwrap(), Source::files(pair).unwrap()] {
            let mut compared = Compared::default();
            for (step, output) in (0..).zip(given.chunks_exact(OUTPUT_BYTES)) {
                source.take(step).unwrap();
                source.give(step, &words_of(output), &mut compared).unwrap();
            }
            assert_eq!(compared, Compared { compared: STEPS + 3, wrong: 2 });
        }
    }
}
