//! Medians, spreads and percentiles.

/// Figures of repeated runs.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    sorted: Vec<f64>,
}

impl Samples {
    /// True without samples.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The sample in the middle; of an even number, the mean of the two; 0 without samples.
    pub fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        match self.sorted.len() {
            0 => 0.0,
            odd if odd % 2 == 1 => self.sorted[middle],
            _ => (self.sorted[middle - 1] + self.sorted[middle]) / 2.0,
        }
    }

    /// Difference of the largest and the smallest sample, in percent of the median.
    pub fn spread_percent(&self) -> f64 {
        match (self.sorted.first(), self.sorted.last()) {
            (Some(least), Some(most)) if self.median() > 0.0 => (most - least) / self.median() * 100.0,
            _ => 0.0,
        }
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Samples {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Samples { sorted }
    }
}

/// The value below which so many percent of the sorted samples lie (nearest rank); 0 without samples.
pub fn percentile<T: Copy + Default>(sorted: &[T], percent: f64) -> T {
    // 99.9 percent of 1,000 are 999, although the product of these floats is a little more.
    let rank = (percent / 100.0 * sorted.len() as f64 - 1e-6).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or_default()
}

/// Per message, or per whatever there are `count` of.
pub fn per(total: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { total / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(figures: &[f64]) -> Samples {
        figures.iter().copied().collect()
    }

    #[test]
    fn the_median_stands_in_the_middle() {
        assert_eq!(samples(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(samples(&[4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert_eq!(samples(&[]).median(), 0.0);
    }

    #[test]
    fn the_spread_is_the_range_over_the_median() {
        assert_eq!(samples(&[9.0, 10.0, 12.0]).spread_percent(), 30.0);
        assert_eq!(samples(&[]).spread_percent(), 0.0);
    }

    #[test]
    fn percentiles_are_samples() {
        let sorted: Vec<u64> = (1..=1000).collect();
        assert_eq!([50.0, 99.0, 99.9, 100.0].map(|p| percentile(&sorted, p)), [500, 990, 999, 1000]);
        assert_eq!(percentile(&sorted, 0.0), 1);
        assert_eq!(percentile::<u64>(&[], 50.0), 0);
        assert_eq!(percentile(&[7u64], 99.9), 7);
    }
}
