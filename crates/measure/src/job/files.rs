//! The files of periodic jobs: inputs, expected outputs, and on request an executable per copy.
//!
//! "Own files" are inodes of their own (ERTS 2022, §VI-A): processes that share a file share its
//! pages in the page cache, program text included; copies share nothing. All lie in one directory
//! that goes when the value is dropped. A killed process cannot do that, so the directory is named
//! after its owner: the guardian removes it, or whoever comes next.

use super::{INPUT_BYTES, Input, OUTPUT_BYTES, STEPS, Work, bytes_of, input};
use journal::directories;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use sys::Error;
use sys::process::Owner;

/// The two files of one copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Inputs, [`INPUT_BYTES`] a step.
    pub inputs: PathBuf,
    /// Expected outputs, [`OUTPUT_BYTES`] a step.
    pub expected: PathBuf,
}

/// What one copy uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// Its executable, if not the common one.
    pub program: Option<PathBuf>,
    /// Its inputs and expected outputs.
    pub files: Pair,
}

/// The directory with all of them.
#[derive(Debug)]
pub struct JobFiles {
    dir: PathBuf,
    /// One entry a copy.
    pub copies: Vec<Copy>,
}

impl JobFiles {
    /// Makes them in a new directory under `place`: one set for all, or one each with an executable
    /// of its own.
    pub fn create(place: &Path, work: Work, copies: usize, own: Option<&Path>) -> Result<Self, Error> {
        let failed = |path: &Path, source| Error::os("create", path.display(), source);
        fs::create_dir_all(place).map_err(|source| failed(place, source))?;
        directories::remove_orphans(place);
        let dir = directories::unused(place, Owner::of_this_process()?);
        fs::create_dir(&dir).map_err(|source| failed(&dir, source))?;
        // From here on the directory is removed whatever fails.
        let mut files = Self { dir, copies: Vec::new() };
        let inputs: Vec<Input> = (0..STEPS).map(input).collect();
        let given = packed::<8>(&inputs, INPUT_BYTES);
        let expected = packed::<4>(&work.expected(&inputs), OUTPUT_BYTES);
        for copy in 0..copies {
            let made = match (own, files.copies.first()) {
                (None, Some(first)) => first.clone(),
                _ => Self::write(&files.dir.join(copy.to_string()), &given, &expected, own)?,
            };
            files.copies.push(made);
        }
        Ok(files)
    }

    fn write(dir: &Path, given: &[u8], expected: &[u8], own: Option<&Path>) -> Result<Copy, Error> {
        let failed = |path: &Path, source| Error::os("write", path.display(), source);
        fs::create_dir(dir).map_err(|source| failed(dir, source))?;
        let pair = Pair { inputs: dir.join("inputs"), expected: dir.join("expected") };
        for (path, bytes) in [(&pair.inputs, given), (&pair.expected, expected)] {
            fs::write(path, bytes).map_err(|source| failed(path, source))?;
        }
        let program = match own {
            None => None,
            Some(program) => {
                let copy = dir.join("stillcore");
                // Copies the bytes, and with them the right to execute.
                fs::copy(program, &copy).map_err(|source| failed(&copy, source))?;
                Some(copy)
            }
        };
        Ok(Copy { program, files: pair })
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for JobFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn packed<const WORDS: usize>(rows: &[[u64; WORDS]], bytes: usize) -> Vec<u8> {
    let mut packed = vec![0; rows.len() * bytes];
    rows.iter().zip(packed.chunks_exact_mut(bytes)).for_each(|(row, into)| bytes_of(row, into));
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn inode(path: &Path) -> u64 {
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn own_files_have_inodes_of_their_own_and_all_go() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("program");
        fs::write(&program, b"#!").unwrap();
        let files = JobFiles::create(place.path(), Work::Empty, 3, Some(&program)).unwrap();
        let dir = files.dir().to_owned();
        let mut inodes: Vec<_> = files
            .copies
            .iter()
            .flat_map(|copy| {
                [copy.program.clone().unwrap(), copy.files.inputs.clone(), copy.files.expected.clone()]
            })
            .map(|path| inode(&path))
            .chain([inode(&program)])
            .collect();
        inodes.sort_unstable();
        inodes.dedup();
        assert_eq!(inodes.len(), 10);
        let size = fs::metadata(&files.copies[2].files.inputs).unwrap().len();
        assert_eq!(size, STEPS * INPUT_BYTES as u64);
        drop(files);
        assert!(!dir.exists());
    }

    #[test]
    fn same_files_are_one_set_and_a_dead_owner_s_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let owner = Owner::of_this_process().unwrap();
        let dead = place.path().join(format!("jobs-{}.0", Owner { start: owner.start + 1, ..owner }));
        let foreign = place.path().join("jobs-not-ours");
        fs::create_dir(&dead).unwrap();
        fs::create_dir(&foreign).unwrap();
        let one = JobFiles::create(place.path(), Work::Attitude, 2, None).unwrap();
        let two = JobFiles::create(place.path(), Work::Attitude, 1, None).unwrap();
        assert_eq!(one.copies[0], one.copies[1]);
        assert_ne!(one.dir(), two.dir());
        assert!(!dead.exists() && foreign.exists() && one.dir().exists());
    }
}
