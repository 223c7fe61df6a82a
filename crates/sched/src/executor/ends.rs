//! Chains from end to end: the sum over their pieces in one executor each, and of the delays
//! between them. A piece takes as long as its callbacks do one after another, or as an analysis of
//! the whole says, whichever is less.

use super::CallbackChain;
use super::responses::Responses;

/// From the activation of the first callback to the end of the last, ns; none without a bound.
pub(super) fn bound(chain: &CallbackChain, known: &mut Responses<'_>) -> Option<u64> {
    let callbacks = &known.system.callbacks;
    let follows = |pair: &[usize]| callbacks[pair[1]].after.contains(&pair[0]);
    if !chain.callbacks.windows(2).all(follows) {
        return None;
    }
    let mut total_ns = 0u64;
    let mut from = 0;
    for at in 0..chain.callbacks.len() {
        let next = chain.callbacks.get(at + 1).map(|&next| &known.system.callbacks[next]);
        let here = known.system.callbacks[chain.callbacks[at]].executor;
        if next.is_some_and(|next| next.executor == here && next.delay_ns == 0) {
            continue;
        }
        let piece = piece(&chain.callbacks[from..=at], known)?;
        total_ns = total_ns.saturating_add(piece).saturating_add(next.map_or(0, |next| next.delay_ns));
        from = at + 1;
    }
    Some(total_ns)
}

fn piece(callbacks: &[usize], known: &mut Responses<'_>) -> Option<u64> {
    let responses = callbacks.iter().map(|&callback| known.response_ns(callback));
    let sum = responses.sum::<Option<u64>>();
    if callbacks.len() == 1 {
        return sum;
    }
    let of = |callback: &usize| &known.system.callbacks[*callback];
    let alone = callbacks[1..].iter().map(of).all(|one| one.after.len() == 1 && one.external.is_none());
    sum.into_iter().chain(known.whole(callbacks, alone)).min()
}
