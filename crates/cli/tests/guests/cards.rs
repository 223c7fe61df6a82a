//! Clients whose traffic crosses two emulated network cards: it interrupts housekeeping CPUs and no
//! measured one, and both cards are back where they were whatever ended the clients.

use crate::machine::Guest;
use crate::support::read_json;
use serde_json::Value;
use std::fs;

pub(crate) fn clients_cross_both_cards(guest: &Guest) {
    let (root, kernel) = (&guest.root, guest.kernel());
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();

    let answer = read_json(&root.join("access20.json"));
    let clients = record(&answer, "net_clients");
    let context = format!("{kernel}: {clients}\n{}", read("access20.log"));
    assert!(happened(clients), "{context}");
    assert!(is_said(clients, "traffic over eth0 and eth1"), "{context}");
    let seen = clients["witness"]["seen"].as_u64().unwrap();
    assert!(clients["ops_ok"].as_u64().unwrap() > 0 && seen > 0, "{context}");
    assert!(clients["witness"]["name"].as_str().unwrap().contains("0 of them on measured CPUs"), "{context}");

    // The kernel's own counts, read independently.
    let lines = interrupt_numbers(clients["witness"]["name"].as_str().unwrap());
    assert!(lines.len() >= 2, "{context}");
    let [before, during, after] = ["interrupts-before", "interrupts-while", "interrupts-after"]
        .map(|name| interrupts(&read(name), &lines));
    let last: Vec<u64> = during.iter().zip(&after).map(|(during, after)| *during.max(after)).collect();
    let grown: Vec<u64> = last.iter().zip(&before).map(|(last, before)| last - before).collect();
    println!("{kernel}: {} operations, interrupts of the cards by CPU: {grown:?}", clients["ops_ok"]);
    // Where the kernel has forgotten them, those of the last moments are missing.
    let least = if after.iter().sum::<u64>() > 0 { seen } else { 1 };
    assert!(grown[0] + grown[1] >= least, "{kernel}: {grown:?}, {context}");
    assert_eq!(grown[2..], [0, 0], "{kernel}: the measured CPUs");

    assert_eq!(read("cards-after"), read("cards-before"), "{kernel}");
    assert!(!read("cards-away").contains("eth"), "{kernel}: {}", read("cards-away"));
    assert_eq!(read("cards-killed"), read("cards-before"), "{kernel}");

    let both = read_json(&root.join("both.json"));
    let records = ["net_clients", "download"].map(|name| record(&both, name));
    assert!(records.iter().all(|record| happened(record)), "{kernel}: {both}");
    let over_cards = records.iter().filter(|record| is_said(record, "traffic over eth0 and eth1")).count();
    let over_loopback = records.iter().filter(|record| is_said(record, "not over network cards")).count();
    assert_eq!((over_cards, over_loopback), (1, 1), "{kernel}: {both}");
    assert!(read("both.txt").contains("not over network cards"), "{}", read("both.txt"));
}

fn record<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer["stressors"].as_array().unwrap().iter().find(|record| record["name"] == name).unwrap()
}

fn is_said(record: &Value, what: &str) -> bool {
    record["confined_by"].as_array().unwrap().iter().any(|word| word.as_str().unwrap().starts_with(what))
}

/// The numbers in `/proc/interrupts of … (IRQ 22, 23), …`.
fn interrupt_numbers(witness: &str) -> Vec<String> {
    let inside = witness.split_once("(IRQ ").and_then(|(_, rest)| rest.split_once(')'));
    inside.into_iter().flat_map(|(inside, _)| inside.split(", ").map(str::to_owned)).collect()
}

/// These interrupts by CPU, the most that any reading of the file has. A card that is away has no
/// name there.
fn interrupts(readings: &str, numbers: &[String]) -> Vec<u64> {
    let cpus = readings.lines().next().unwrap().split_whitespace().count();
    let mut sums = vec![0; cpus];
    for number in numbers {
        let mut most = vec![0; cpus];
        let of_card = readings.lines().filter_map(|line| line.split_once(':'));
        for (_, line) in of_card.filter(|(of, _)| of.trim() == number) {
            let counts = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
            most.iter_mut().zip(counts).for_each(|(most, count)| *most = count.max(*most));
        }
        sums.iter_mut().zip(most).for_each(|(sum, most)| *sum += most);
    }
    sums
}

/// Emulated on a crowded machine, one may be weak.
fn happened(record: &Value) -> bool {
    record["state"] == "ok" || record["state"] == "weak"
}
