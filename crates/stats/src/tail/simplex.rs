//! Minimisation without derivatives: J. Nelder and R. Mead, "A simplex method for function
//! minimization", The Computer Journal 7 (1965), with the usual coefficients. For likelihoods of
//! two or three parameters that end abruptly at the edge of their support.

/// Steps after which it gives up; likelihoods here need a tenth.
const MOST_STEPS: usize = 600;

/// The lowest point found from `start`, first steps of `step` along each axis, and the value there.
/// A value that is not finite is worse than any other.
pub(crate) fn minimise<const N: usize>(
    start: [f64; N],
    step: [f64; N],
    of: impl Fn(&[f64; N]) -> f64,
) -> ([f64; N], f64) {
    let value = |point: &[f64; N]| {
        let value = of(point);
        if value.is_finite() { value } else { f64::MAX }
    };
    let mut corners: Vec<([f64; N], f64)> = vec![(start, value(&start))];
    for axis in 0..N {
        let mut point = start;
        point[axis] += step[axis];
        corners.push((point, value(&point)));
    }
    for _ in 0..MOST_STEPS {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (corners[0].1, corners[N].1);
        if worst - best <= 1e-10 * (best.abs() + 1e-10) {
            break;
        }
        let mut centre = [0.0; N];
        for (point, _) in &corners[..N] {
            (0..N).for_each(|axis| centre[axis] += point[axis] / N as f64);
        }
        let towards = |share: f64| {
            let mut point = centre;
            (0..N).for_each(|axis| point[axis] += share * (corners[N].0[axis] - centre[axis]));
            (point, value(&point))
        };
        let reflected = towards(-1.0);
        let next = if reflected.1 < best {
            let expanded = towards(-2.0);
            if expanded.1 < reflected.1 { expanded } else { reflected }
        } else if reflected.1 < corners[N - 1].1 {
            reflected
        } else {
            let contracted = towards(if reflected.1 < worst { -0.5 } else { 0.5 });
            if contracted.1 >= worst.min(reflected.1) {
                let best = corners[0].0;
                for (point, result) in &mut corners[1..] {
                    (0..N).for_each(|axis| point[axis] = f64::midpoint(point[axis], best[axis]));
                    *result = value(point);
                }
                continue;
            }
            contracted
        };
        corners[N] = next;
    }
    corners.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((start, f64::MAX))
}

/// The lowest point of a function of one parameter within two bounds, by golden sections around the
/// best of a grid.
pub(crate) fn least(low: f64, high: f64, of: impl Fn(f64) -> f64) -> (f64, f64) {
    const GRID: usize = 24;
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let step = (high - low) / GRID as f64;
    let at = |k: usize| low + k as f64 * step;
    let value = |x: f64| {
        let value = of(x);
        if value.is_finite() { value } else { f64::MAX }
    };
    let best =
        (0..=GRID).map(|k| (k, value(at(k)))).min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |best| best.0);
    let (mut a, mut b) = (at(best.saturating_sub(1)), at((best + 1).min(GRID)));
    let (mut c, mut d) = (b - GOLDEN * (b - a), a + GOLDEN * (b - a));
    let (mut at_c, mut at_d) = (value(c), value(d));
    for _ in 0..40 {
        if at_c <= at_d {
            (b, d, at_d) = (d, c, at_c);
            c = b - GOLDEN * (b - a);
            at_c = value(c);
        } else {
            (a, c, at_c) = (c, d, at_d);
            d = a + GOLDEN * (b - a);
            at_d = value(d);
        }
    }
    if at_c < at_d { (c, at_c) } else { (d, at_d) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rosenbrock_s_valley_is_walked_to_its_end() {
        let valley = |p: &[f64; 2]| (1.0 - p[0]).powi(2) + 100.0 * (p[1] - p[0] * p[0]).powi(2);
        let ([x, y], value) = minimise([-1.2, 1.0], [0.5, 0.5], valley);
        assert!((x - 1.0).abs() < 1e-3 && (y - 1.0).abs() < 1e-3 && value < 1e-6, "{x} {y} {value}");
    }

    #[test]
    fn an_edge_is_not_crossed() {
        let edge = |p: &[f64; 1]| if p[0] < 2.0 { f64::INFINITY } else { p[0] };
        assert!((minimise([9.0], [1.0], edge).0[0] - 2.0).abs() < 1e-6);
        let (x, _) = least(-5.0, 5.0, |x| (x - 1.25).powi(2));
        assert!((x - 1.25).abs() < 1e-6);
    }
}
