//! Numbers as people read them.

/// `310 MiB`, `1.2 GiB`, `312 B`.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"");
    // 1023.95 would be shown as 1024.
    while value >= 1023.5 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// `120,433`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A length of time in its largest unit: `0.3 s`, `41 s`, `54 min`, `3 h`, `3 days`.
pub fn span(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    let seconds = seconds.max(0.0);
    match seconds {
        _ if seconds < 0.05 => "0 s".to_owned(),
        _ if seconds < 9.95 && (seconds - seconds.round()).abs() >= 0.05 => format!("{seconds:.1} s"),
        _ if seconds < 99.5 => format!("{seconds:.0} s"),
        _ if seconds < 99.5 * MINUTE => format!("{:.0} min", seconds / MINUTE),
        _ if seconds < 48.0 * HOUR => format!("{:.0} h", seconds / HOUR),
        _ => format!("{:.0} days", seconds / DAY),
    }
}

/// [`span`] of whole seconds.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
pub fn whole_span(seconds: u64) -> String {
    span(seconds as f64)
}

/// `3 s ago`.
pub fn ago(seconds: f64) -> String {
    format!("{} ago", span(seconds))
}

/// `in 54 min`.
pub fn ahead(seconds: u64) -> String {
    format!("in {}", whole_span(seconds))
}

/// A round trip for an overview: `23 ms`, `1.4 ms`, `0.21 ms`.
pub fn round_trip(milliseconds: f64) -> String {
    match milliseconds {
        _ if milliseconds < 0.995 => format!("{milliseconds:.2} ms"),
        _ if milliseconds < 9.95 => format!("{milliseconds:.1} ms"),
        _ => format!("{milliseconds:.0} ms"),
    }
}

/// A measured round trip: always one decimal, two below 1 ms.
pub fn measured(milliseconds: f64) -> String {
    if milliseconds < 0.995 { format!("{milliseconds:.2} ms") } else { format!("{milliseconds:.1} ms") }
}

/// `2 %`, and `<1 %` for what would be rounded to nothing.
pub fn percent(value: f64) -> String {
    if value > 0.0 && value < 0.5 { "<1 %".to_owned() } else { format!("{value:.0} %") }
}

/// A value, or `-` for none.
pub fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_two_digits_and_a_unit() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10 * 1024, "10 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (325_058_560, "310 MiB"),
            (1_288_490_189, "1.2 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (9_001_225, "9,001,225")] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn spans_use_the_largest_unit() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.3, "0.3 s"),
            (2.0, "2 s"),
            (41.0, "41 s"),
            (240.0, "4 min"),
            (3240.0, "54 min"),
            (7200.0, "2 h"),
            (259_200.0, "3 days"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn round_trips_keep_their_order_of_magnitude() {
        for (milliseconds, text) in [(0.214, "0.21 ms"), (1.42, "1.4 ms"), (23.1, "23 ms"), (265.4, "265 ms")]
        {
            assert_eq!(round_trip(milliseconds), text);
        }
        assert_eq!(measured(23.1), "23.1 ms");
    }

    #[test]
    fn little_loss_is_not_none() {
        assert_eq!([percent(0.0), percent(0.2), percent(2.0)], ["0 %", "<1 %", "2 %"]);
    }
}
