//! Tables of task sets, Parquet and Arrow, as others write them.

use super::{Outcome, Reader, bytes, fixture, in_scratch, whole};
use model::integers::IntegerTable;
use sched::asked::Unit;
use sched::simple::{Column, Key, SimpleSet, TaskColumns};
use std::fs;

const FILES: [&str; 8] = [
    "pyarrow.parquet",
    "narrow.parquet",
    "polars.parquet",
    "duckdb.parquet",
    "pyarrow.arrow",
    "narrow.arrow",
    "polars.arrow",
    "zstd.arrow",
];

pub(crate) fn reader() -> Reader {
    let seeds = FILES.map(|file| fixture(&format!("fixtures/task-tables/{file}"))).to_vec();
    Reader { name: "task-table", seeds, damage: bytes, read, short: 2_000 }
}

fn read(bytes: &[u8]) -> Outcome {
    in_scratch(|scratch| {
        let path = scratch.at("table");
        fs::write(&path, bytes).unwrap();
        let Ok(Some(mut table)) = IntegerTable::open(&path) else { return Outcome::Refused };
        let keys: Vec<Option<Key>> = table.names().into_iter().map(Key::by_name).collect();
        let (mut pieces, mut set) = (Vec::new(), SimpleSet::default());
        loop {
            match table.next(&mut pieces) {
                Ok(true) => {}
                end => return whole(end.is_ok()),
            }
            let rows = pieces.first().map_or(0, |piece| piece.values.len());
            let mut columns = TaskColumns::new(rows, Unit::Ns);
            for (key, piece) in keys.iter().zip(&pieces) {
                assert!(piece.present.as_ref().is_none_or(|present| present.len() == piece.values.len()));
                let column = Column { values: &piece.values, present: piece.present.as_deref() };
                assert!(key.is_none_or(|key| columns.add(key, column)), "columns of one length");
            }
            columns.take(0..rows, &mut set);
        }
    })
}
