//! The web page in a real browser, of a real daemon in a mesh of five.

use crate::browser::Browser;
use crate::scene::{Scene, judge};
use crate::waypoints::{five_sites, node, settle};
use serde_json::json;

const ADDRESS: &str = "http://127.0.0.1:9586/";

fn scene() -> Scene {
    let scene = five_sites().start(|site| match site.host.name() {
        "alpha" => node(site).with("page: 127.0.0.1:9586"),
        _ => node(site),
    });
    settle(&scene);
    scene
}

/// Contrast between the text of an element and the ground behind it (WCAG 2.2).
const CONTRAST: &str = r"((selector) => {
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (text) => {
    const [r, g, b] = channels(text).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let node = document.querySelector(selector);
  const ink = light(getComputedStyle(node).color);
  const clear = (each) => { const c = channels(getComputedStyle(each).backgroundColor); return c.length === 4 && c[3] === 0; };
  while (node.parentElement && clear(node)) node = node.parentElement;
  const ground = light(getComputedStyle(node).backgroundColor);
  return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
})";

#[test]
fn a_person_sees_the_mesh_and_asks_it_with_and_without_a_mouse() {
    if !judge("/usr/bin/chromium") {
        return;
    }
    let mut scene = scene();
    let host = scene.host("alpha").clone();
    let mut browser = Browser::start(&host, &scene.internet.world.directory().join("browser"));
    browser.become_screen(1280, 1000, "light");
    browser.open(ADDRESS);
    browser.wait("the map", "document.querySelectorAll('.vertex').length === 5");
    assert_eq!(browser.text("#node"), "alpha.lab");
    assert!(browser.text("#summary").contains("4 of 4 other nodes up"), "{}", browser.text("#summary"));
    assert_eq!((browser.count("#links tr"), browser.count("#map .edge.measured")), (4, 4));
    assert_eq!(browser.text("#problems b"), "All is well");
    browser.wait(
        "links between others, which Babel tells of",
        "document.querySelectorAll('#map .edge.announced').length === 6",
    );
    browser.wait("charts", "document.querySelectorAll('.chart .line').length >= 3");
    for hop in ["bravo", "charlie", "delta", "echo"] {
        assert!(browser.text("#map-words").contains(hop), "{}", browser.text("#map-words"));
    }

    the_journey_is_drawn_through_its_stops(&mut browser);
    browser.picture(&host, "journey");
    a_packet_is_explained(&mut browser, &scene);
    a_node_is_chosen_by_keyboard(&mut browser);
    everything_has_a_name_for_a_screen_reader(&mut browser);
    it_fits_a_phone_and_the_night(&mut browser, &scene);

    scene.mesh.kill("echo");
    browser.wait("the loss of a node", "document.querySelector('.vertex.down')?.textContent === 'echo'");
    browser.wait("the count", "document.querySelector('#summary').textContent.includes('3 of 4')");
    assert_eq!(browser.complaints, Vec::<String>::new());
    let strangers: Vec<&String> = browser
        .requested
        .iter()
        .filter(|address| !address.starts_with(ADDRESS) && !address.starts_with("about:"))
        .collect();
    assert_eq!(strangers, Vec::<&String>::new(), "the page asked somebody else");
}

/// By keyboard: the policy's button, then its legs on the map in order, the repeated stop included.
fn the_journey_is_drawn_through_its_stops(browser: &mut Browser) {
    assert_eq!(browser.count(".leg"), 0);
    browser.press("#policies button", "Enter");
    browser.wait("the journey", "document.querySelectorAll('.leg').length === 4");
    let steps = browser
        .value("[...document.querySelectorAll('text.step')].map((step) => step.textContent).join(' ')");
    assert_eq!(steps, json!("1 2 3 4"));
    assert_eq!(browser.text("#shown"), "Policy scenic: alpha › bravo › charlie › bravo › delta");
    // Between bravo and charlie it goes and comes: two lines that do not cover each other.
    let ways = browser
        .value("new Set([...document.querySelectorAll('.leg')].map((leg) => leg.getAttribute('d'))).size");
    assert_eq!(ways, json!(4));
    assert_eq!(
        browser.value("document.activeElement.getAttribute('aria-pressed')"),
        json!("true"),
        "focus stays"
    );
}

fn a_packet_is_explained(browser: &mut Browser, scene: &Scene) {
    let (from, to) = (scene.site("alpha").inside(), scene.site("delta").inside());
    browser.value(&format!(
        "document.querySelector('[name=source]').value = '{from}'; document.querySelector('[name=destination]').value = '{to}'"
    ));
    browser.press("[name=destination]", "Enter");
    browser.wait("the verdict", "document.querySelector('#answer .verdict.good')");
    let answer = browser.text("#answer");
    assert!(answer.contains("sent to bravo") && answer.contains("scenic"), "{answer}");
    assert_eq!(browser.count(".leg.found"), 4);
    browser.value("document.querySelector('[name=destination]').value = 'nonsense'");
    browser.press("[name=destination]", "Enter");
    browser.wait("the complaint", "document.querySelector('#answer .verdict.bad')");
    assert!(browser.text("#answer").contains("`nonsense` is no IP address"));
    // The browser logs each answer of 400, which is what was wanted here.
    assert!(browser.complaints.iter().all(|complaint| complaint.contains("400")), "{:?}", browser.complaints);
    browser.complaints.clear();
}

fn a_node_is_chosen_by_keyboard(browser: &mut Browser) {
    browser.press("[data-focus='node echo']", "Enter");
    browser.wait("the way to echo", "document.querySelectorAll('.leg.found').length === 1");
    assert!(browser.text("#shown").starts_with("alpha › echo"), "{}", browser.text("#shown"));
    assert_eq!(browser.value("document.activeElement.dataset.focus"), json!("node echo"), "focus stays");
    browser.press("[data-focus='node echo']", "Escape");
    browser.wait("nothing lit up", "document.querySelectorAll('.leg').length === 0");
}

fn everything_has_a_name_for_a_screen_reader(browser: &mut Browser) {
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().unwrap();
    let of =
        |node: &serde_json::Value, field: &str| node[field]["value"].as_str().unwrap_or_default().to_owned();
    let mut buttons = 0;
    for node in nodes.iter().filter(|node| node["ignored"] != true) {
        let role = of(node, "role");
        if ["button", "textbox", "combobox", "img", "image", "link", "heading", "table"]
            .contains(&role.as_str())
        {
            assert!(!of(node, "name").is_empty() || role == "table", "a {role} without a name: {node}");
            buttons += usize::from(role == "button");
        }
    }
    assert!(buttons >= 5 + 4 + 1 + 1, "five nodes, four links, a policy, a form: {buttons}");
    assert_eq!(browser.value("document.documentElement.lang"), json!("en"));
}

fn it_fits_a_phone_and_the_night(browser: &mut Browser, scene: &Scene) {
    let host = scene.host("alpha");
    for scheme in ["light", "dark"] {
        for (width, height, name) in [(1280, 1000, "desk"), (390, 844, "phone")] {
            browser.become_screen(width, height, scheme);
            browser.wait("the layout", &format!("innerWidth === {width}"));
            browser
                .wait("the map's size", "document.querySelector('#map').viewBox.baseVal.width <= innerWidth");
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{name}: {wide} wide");
            for selector in [
                "#summary",
                "h2",
                "#shown",
                ".policies .stops",
                "#problems b",
                "th",
                ".state",
                "button[type=submit]",
            ] {
                let contrast = browser.value(&format!("({CONTRAST})({})", json!(selector))).as_f64().unwrap();
                assert!(contrast >= 4.5, "{selector} in {scheme}: contrast {contrast:.1}");
            }
            browser.picture(host, &format!("{name}-{scheme}"));
        }
    }
    let dark = browser.value("getComputedStyle(document.body).backgroundColor");
    browser.become_screen(1280, 1000, "light");
    let light = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_ne!(dark, light);
    scene.viamesh("alpha", &["status", "--check", "live"]).successful().unwrap();
}
