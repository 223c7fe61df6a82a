//! Packages of the static program: a tarball, a Debian package, an RPM and an OCI image for each
//! architecture, a bill of materials and the checksums of all. The same program and the same time
//! give the same bytes. `cargo xtask dist` builds the program and calls this.
#![forbid(unsafe_code)]

mod archive;
mod contents;
mod debian;
mod image;
mod materials;
mod red_hat;
mod sums;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use contents::{Arch, Release, Sources};

/// What to package.
#[derive(Parser)]
#[command(name = "pack", about = "Packages of the static program")]
struct Args {
    /// A program for an architecture: x86_64=FILE or aarch64=FILE (repeatable).
    #[arg(long = "program", value_name = "ARCH=FILE", required = true)]
    programs: Vec<String>,
    /// Program of this machine that prints manual pages and completions [default: the one of this
    /// architecture].
    #[arg(long, value_name = "FILE")]
    pages: Option<PathBuf>,
    /// Directory of further files to ship, such as wheels.
    #[arg(long, value_name = "DIR")]
    with: Option<PathBuf>,
    /// Directory to write to.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Time of every file, seconds since 1970.
    #[arg(long, value_name = "SECONDS")]
    epoch: u32,
    /// Version of the packages.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Maintainer, as Debian writes one.
    #[arg(long, default_value = "The stillcore contributors <stillcore@example.org>")]
    maintainer: String,
    /// Root of the source tree.
    #[arg(long, value_name = "DIR", default_value = ".")]
    source: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let programs = args.programs.iter().map(|word| program(word)).collect::<Result<Vec<_>>>()?;
    let here = programs.iter().find(|(arch, _)| arch.name() == std::env::consts::ARCH);
    let pages = args.pages.clone().or_else(|| here.map(|(_, file)| file.clone()));
    let pages = pages.context("none of the programs runs here: name one that does with --pages FILE")?;
    let release = Release { version: args.version, epoch: args.epoch, maintainer: args.maintainer };
    let sources = Sources::read(&args.source, &pages, &release)?;
    fs::create_dir_all(&args.out).with_context(|| format!("create {}", args.out.display()))?;
    sums::remove_listed(&args.out)?;
    for (arch, file) in &programs {
        let program = fs::read(file).with_context(|| format!("read {}", file.display()))?;
        ensure!(arch.is_of(&program), "{} is no program for {}", file.display(), arch.name());
        let write = |name: String, bytes: Vec<u8>| put(&args.out, &name, &bytes);
        write(contents::tarball_name(&release, *arch), sources.tarball(&release, *arch, &program)?)?;
        write(debian::name(&release, *arch), debian::package(&sources, &release, *arch, &program)?)?;
        write(red_hat::name(&release, *arch), red_hat::package(&sources, &release, *arch, &program)?)?;
        write(image::name(&release, *arch), image::layout(&sources, &release, *arch, &program)?)?;
        let name = format!("stillcore-{}-linux", arch.name());
        put(&args.out, &name, &program)?;
        fs::set_permissions(args.out.join(&name), fs::Permissions::from_mode(0o755))?;
    }
    if let Some(folder) = &args.with {
        for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
            let entry = entry?;
            let to = args.out.join(entry.file_name());
            fs::copy(entry.path(), &to).with_context(|| format!("copy to {}", to.display()))?;
        }
    }
    let bill = materials::bill(&args.source, &release)?;
    put(&args.out, &format!("stillcore-{}.cdx.json", release.version), &bill)?;
    print!("{}", sums::write(&args.out)?);
    Ok(())
}

/// `ARCH=FILE`.
fn program(word: &str) -> Result<(Arch, PathBuf)> {
    let (arch, file) = word.split_once('=').with_context(|| format!("--program {word}: not ARCH=FILE"))?;
    Ok((Arch::of(arch)?, PathBuf::from(file)))
}

fn put(out: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = out.join(name);
    fs::write(&path, bytes).with_context(|| format!("write {}", path.display()))
}
