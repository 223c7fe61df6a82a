//! An attitude-control step: what the AOCS of the ERTS 2022 paper does in kind, on textbook
//! equations.
//!
//! A rigid body with wheels: propagate attitude and rates by Runge-Kutta (Wertz, "Spacecraft
//! Attitude Determination and Control", 1978, §16.1: Euler's equations and quaternion kinematics),
//! propagate a 6 × 6 error covariance, correct with the star tracker by a scalar update an axis
//! (Lefferts, Markley & Shuster 1982, reduced form), then quaternion feedback with saturated wheels
//! (Wie 1985). While the error is large a step integrates finer, so that steps differ in length as
//! the paper's do.

use super::{Input, Output};

/// The state that steps hand on.
pub(super) struct Attitude {
    quaternion: [f64; 4],
    rate: [f64; 3],
    torque: [f64; 3],
    covariance: [[f64; 6]; 6],
}

/// Period of control, s.
const STEP_S: f64 = 0.125;
/// Moments of inertia, kg m².
const INERTIA: [f64; 3] = [120.0, 95.0, 140.0];
/// Largest torque of a wheel, Nm.
const TORQUE: f64 = 0.2;
/// Gains of the feedback: attitude, rate.
const GAINS: [f64; 2] = [1.2, 15.0];
/// Variance of a star tracker's axis, rad²; of drift, a step.
const MEASURED: f64 = 1e-6;
const DRIFT: f64 = 1e-10;

impl Default for Attitude {
    fn default() -> Self {
        let mut covariance = [[0.0; 6]; 6];
        (0..6).for_each(|axis| covariance[axis][axis] = 1e-4);
        Self { quaternion: [1.0, 0.0, 0.0, 0.0], rate: [0.0; 3], torque: [0.0; 3], covariance }
    }
}

impl Attitude {
    /// One period of control: sensors in, torques and a mode word out.
    #[inline(never)]
    pub(super) fn step(&mut self, input: &Input) -> Output {
        let sensed = input.map(f64::from_bits);
        let target = [sensed[0], sensed[1], sensed[2], sensed[3]];
        let coarse = dot(&error(&self.quaternion, &target)) > 1e-4;
        let parts = if coarse { 64 } else { 16 };
        for _ in 0..parts {
            self.propagate(STEP_S / f64::from(parts));
        }
        self.spread();
        self.correct(&target, [sensed[4], sensed[5], sensed[6]]);
        let off = error(&self.quaternion, &target);
        self.torque = std::array::from_fn(|axis| {
            (-GAINS[0] * off[axis] - GAINS[1] * self.rate[axis]).clamp(-TORQUE, TORQUE)
        });
        let [x, y, z] = self.torque.map(f64::to_bits);
        [x, y, z, u64::from(coarse)]
    }

    /// Fourth-order Runge-Kutta over `h` seconds, torque held.
    fn propagate(&mut self, h: f64) {
        let state = (self.quaternion, self.rate);
        let ahead = |slope: &([f64; 4], [f64; 3]), by: f64| {
            let quaternion: [f64; 4] = std::array::from_fn(|part| state.0[part] + by * slope.0[part]);
            let rate: [f64; 3] = std::array::from_fn(|axis| state.1[axis] + by * slope.1[axis]);
            (quaternion, rate)
        };
        let k1 = self.slope(&state);
        let k2 = self.slope(&ahead(&k1, h / 2.0));
        let k3 = self.slope(&ahead(&k2, h / 2.0));
        let k4 = self.slope(&ahead(&k3, h));
        let mean = |a: f64, b: f64, c: f64, d: f64| (a + 2.0 * b + 2.0 * c + d) / 6.0;
        let turned: [f64; 4] = std::array::from_fn(|part| {
            state.0[part] + h * mean(k1.0[part], k2.0[part], k3.0[part], k4.0[part])
        });
        self.quaternion = unit(&turned);
        self.rate = std::array::from_fn(|axis| {
            state.1[axis] + h * mean(k1.1[axis], k2.1[axis], k3.1[axis], k4.1[axis])
        });
    }

    fn slope(&self, (q, w): &([f64; 4], [f64; 3])) -> ([f64; 4], [f64; 3]) {
        let turn = [
            -q[1] * w[0] - q[2] * w[1] - q[3] * w[2],
            q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
            q[0] * w[1] - q[1] * w[2] + q[3] * w[0],
            q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
        ];
        let spin = std::array::from_fn(|axis| {
            let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
            (self.torque[axis] + (INERTIA[next] - INERTIA[last]) * w[next] * w[last]) / INERTIA[axis]
        });
        (turn.map(|part| part / 2.0), spin)
    }

    /// P ← F P Fᵀ + Q, where F carries rate errors into attitude errors.
    fn spread(&mut self) {
        let mut carry = [[0.0; 6]; 6];
        for axis in 0..6 {
            carry[axis][axis] = 1.0;
            if axis < 3 {
                let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
                carry[axis][axis + 3] = STEP_S;
                carry[axis][next] = self.rate[last] * STEP_S;
                carry[axis][last] = -self.rate[next] * STEP_S;
            }
        }
        let half = product(&carry, &self.covariance);
        let transposed = std::array::from_fn(|row| std::array::from_fn(|column| carry[column][row]));
        self.covariance = product(&half, &transposed);
        (0..6).for_each(|axis| self.covariance[axis][axis] += DRIFT);
    }

    /// Three scalar updates: each axis of the star tracker moves attitude and rate by its gain.
    fn correct(&mut self, target: &[f64; 4], gyroscope: [f64; 3]) {
        for axis in 0..3 {
            let seen = -error(&self.quaternion, target)[axis];
            let column: [f64; 6] = std::array::from_fn(|row| self.covariance[row][axis]);
            let gain = column.map(|part| part / (column[axis] + MEASURED));
            let before = self.covariance[axis];
            for (row, gain) in self.covariance.iter_mut().zip(gain) {
                row.iter_mut().zip(before).for_each(|(part, before)| *part -= gain * before);
            }
            let half: [f64; 3] = std::array::from_fn(|part| gain[part] * seen / 2.0);
            let q = self.quaternion;
            self.quaternion = unit(&[
                q[0] - q[1] * half[0] - q[2] * half[1] - q[3] * half[2],
                q[1] + q[0] * half[0],
                q[2] + q[0] * half[1],
                q[3] + q[0] * half[2],
            ]);
            self.rate[axis] += 0.1 * (gyroscope[axis] - self.rate[axis]);
        }
    }
}

/// The rotation from the target to the attitude, as a vector of twice the half angles.
fn error(q: &[f64; 4], target: &[f64; 4]) -> [f64; 3] {
    let t = target;
    [
        2.0 * (t[0] * q[1] - t[1] * q[0] - t[2] * q[3] + t[3] * q[2]),
        2.0 * (t[0] * q[2] - t[2] * q[0] - t[3] * q[1] + t[1] * q[3]),
        2.0 * (t[0] * q[3] - t[3] * q[0] - t[1] * q[2] + t[2] * q[1]),
    ]
}

fn dot(vector: &[f64; 3]) -> f64 {
    vector.iter().map(|part| part * part).sum()
}

fn unit(q: &[f64; 4]) -> [f64; 4] {
    let length = q.iter().map(|part| part * part).sum::<f64>().sqrt();
    q.map(|part| part / length)
}

fn product(a: &[[f64; 6]; 6], b: &[[f64; 6]; 6]) -> [[f64; 6]; 6] {
    std::array::from_fn(|row| {
        std::array::from_fn(|column| (0..6).map(|inner| a[row][inner] * b[inner][column]).sum())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job;

    #[test]
    fn the_loop_follows_its_target_and_stays_finite() {
        let mut attitude = Attitude::default();
        let mut worst = 0.0f64;
        for step in 0..8_000 {
            let input = job::input(step);
            let output = attitude.step(&input);
            let torque = [output[0], output[1], output[2]].map(f64::from_bits);
            assert!(
                torque.iter().all(|part| part.is_finite() && part.abs() <= TORQUE),
                "step {step}: {torque:?}"
            );
            if step > 100 {
                let target = [input[0], input[1], input[2], input[3]].map(f64::from_bits);
                worst = worst.max(dot(&error(&attitude.quaternion, &target)).sqrt());
            }
        }
        assert!(worst < 0.05, "the estimate is {worst} rad off");
        let length: f64 = attitude.quaternion.iter().map(|part| part * part).sum();
        assert!((length - 1.0).abs() < 1e-9);
    }
}
