//! Where a host and the reference host part.

use super::page::{Page, Row};
use super::paint::Paint;
use super::wrap::Breaks;
use crate::report::{Compared, Difference, Seen};

/// How many differences are shown, unless everything is.
const DIFFERENCES_MAX: usize = 20;
/// How many scripts are shown of each; and when everything is.
const SCRIPTS_MAX: usize = 3;
const SCRIPTS_MOST: usize = 20;
/// How many scripts that could not be compared are shown, unless everything is.
const LEFT_OUT_MAX: usize = 5;

/// Writes the comparison.
pub(super) fn compared(page: &mut Page, compared: &Compared, in_full: bool) {
    let shown_of = |all: usize, most: usize| if in_full { all } else { all.min(most) };
    page.gap();
    page.line("COMPARED", Paint::Bold, &format!("with {}", compared.with));
    page.sentence(
        4,
        Paint::Dim,
        "What the specification leaves open is a difference, and no fault: no verdict depends on this.",
    );
    let Compared { scripts, alike, .. } = compared;
    let sum = match scripts - alike {
        0 => "nothing differs in any script".to_owned(),
        differ => format!("something differs in {differ} of them"),
    };
    page.row(&Row::new("scripts", &format!("{scripts} compared: {sum}")));
    let shown = shown_of(compared.left_out.len(), LEFT_OUT_MAX);
    for left_out in &compared.left_out[..shown] {
        page.row(&Row::new("left out", &format!("{}: {}", left_out.script, left_out.why)).hanging(2));
    }
    more(page, compared.left_out.len() - shown, "scripts left out");
    let shown = shown_of(compared.differences.len(), DIFFERENCES_MAX);
    for difference in &compared.differences[..shown] {
        page.empty_row();
        self::difference(page, difference, in_full);
    }
    more(page, compared.differences.len() - shown, "differences");
    if compared.more > 0 {
        page.row(&Row::new("", &format!("and {} differences that no report lists", compared.more)));
    }
}

/// One difference, on one line for each of the two hosts.
fn difference(page: &mut Page, difference: &Difference, in_full: bool) {
    let Difference { what, point, place, target, reference, .. } = difference;
    let point = point.as_ref().map(|point| format!(" {point}")).unwrap_or_default();
    let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
    page.row(&Row::new("differs", &format!("{what}{point}{place}")).painted(Paint::Yellow).hanging(2));
    for (label, value) in [("this host", target), ("reference", reference)] {
        match value {
            Some(value) => page.row(&Row::new(label, value).broken(Breaks::Anywhere)),
            None => page.row(&Row::new(label, "nothing").painted(Paint::Dim)),
        }
    }
    let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
    for Seen { script, guest, .. } in &difference.seen {
        let guest = guest.as_deref();
        match places.iter_mut().find(|(known, _)| known == script) {
            Some((_, guests)) => guests.extend(guest),
            None => places.push((script, guest.into_iter().collect())),
        }
    }
    let shown = places.len().min(if in_full { SCRIPTS_MOST } else { SCRIPTS_MAX });
    let words: Vec<String> =
        places[..shown].iter().map(|(script, guests)| place_of(script, guests)).collect();
    let more = match places.len() - shown {
        0 => String::new(),
        1 => ", and 1 more script".to_owned(),
        more => format!(", and {more} more scripts"),
    };
    page.row(&Row::new("in", &format!("{}{more}", words.join(", "))).hanging(2));
}

fn place_of(script: &str, guests: &[&str]) -> String {
    match guests {
        [] => script.to_owned(),
        [guest] => format!("{script} (guest {guest})"),
        several => format!("{script} ({} guests)", several.len()),
    }
}

fn more(page: &mut Page, count: usize, what: &str) {
    if count > 0 {
        page.row(&Row::new("", &format!("and {count} more {what}; --verbose lists them")));
    }
}
