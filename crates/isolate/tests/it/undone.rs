//! What was undone, compared with the machine later.

use crate::engine::{Place, live};
use isolate::undone::find;
use std::fs;

/// Later, too, what was undone can be compared with what was before, until something is isolated
/// again.
#[test]
fn what_was_undone_can_be_compared_later() {
    let old = ["0".to_owned(), "1".to_owned()];
    let place = Place::new(&old);
    let plan = place.plan(&["5".to_owned(), "6".to_owned()]);
    let compared = || find(&[place.state()]).unwrap().map(|undone| undone.compare(&mut live()));
    assert_eq!(compared(), None);
    place.apply(&plan, &mut live()).unwrap();
    place.undo(&mut live());
    assert_eq!(compared().map(|one| (one.as_before, one.gone, one.differ.len())), Some((2, 0, 0)));
    fs::write(&place.files[1], "9").unwrap();
    fs::remove_file(&place.files[0]).unwrap();
    let found = compared().unwrap();
    assert_eq!((found.as_before, found.gone), (0, 1));
    assert!(found.differ[0].ends_with(" is 9; it was 1"), "{:?}", found.differ);
    // A directory in its place cannot be read by anybody: that is no value as before.
    fs::create_dir(&place.files[0]).unwrap();
    let found = compared().unwrap();
    assert_eq!((found.as_before, found.gone, found.unread.len()), (0, 0, 1), "{found:?}");
    fs::remove_dir(&place.files[0]).unwrap();
    // Of another boot nothing is said, nor by a file that is not whole.
    let file = place.state().join("isolation.undone.json");
    let text = fs::read_to_string(&file).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    fs::write(&file, text.replace(boot.trim(), "another")).unwrap();
    assert_eq!(compared(), None);
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert_eq!(compared(), None);
    fs::write(&file, text).unwrap();
    assert!(compared().is_some());
    fs::write(&place.files[0], "0").unwrap();
    place.apply(&plan, &mut live()).unwrap();
    assert!(!file.exists());
}

/// What somebody else has set, the undo leaves alone: it is not as it was, and later neither.
#[test]
fn what_the_undo_left_alone_is_not_as_before() {
    let place = Place::new(&["0".to_owned(), "1".to_owned()]);
    place.apply(&place.plan(&["5".to_owned(), "6".to_owned()]), &mut live()).unwrap();
    // A second call of the same, which changes what it must: it is named once all the same.
    fs::write(&place.files[0], "4").unwrap();
    place.apply(&place.plan(&["5".to_owned(), "6".to_owned()]), &mut live()).unwrap();
    fs::write(&place.files[0], "7").unwrap();
    let reverted = place.undo(&mut live());
    assert_eq!((reverted.left.len(), reverted.as_before, reverted.differ.len()), (1, 1, 0), "{reverted:?}");
    let found = find(&[place.state()]).unwrap().unwrap().compare(&mut live());
    assert_eq!((found.as_before, found.differ.len()), (1, 1), "{found:?}");
    assert!(found.differ[0].ends_with(" is 7; it was 0"), "{:?}", found.differ);
}
