//! A real browser, driven by its own protocol over two pipes: Chromium without a window.

use lab::{Host, Process};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use crate::scene::PATIENCE;

/// A browser with one page.
pub(crate) struct Browser {
    process: Process,
    commands: File,
    messages: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// Everything that the page complained about, and every address that it asked for.
    pub(crate) complaints: Vec<String>,
    pub(crate) requested: Vec<String>,
    folder: PathBuf,
}

impl Browser {
    /// Starts Chromium at a host, with a profile of its own in `folder`.
    pub(crate) fn start(host: &Host, folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let (commands, messages) = (folder.join("commands"), folder.join("messages"));
        let mut fifos = Command::new("mkfifo");
        fifos.args([&commands, &messages]);
        host.run(fifos, PATIENCE).unwrap().successful().unwrap();
        let mut command = Command::new("sh");
        let script = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
                      --no-first-run --disable-background-networking --hide-scrollbars \
                      --user-data-dir=\"$1/profile\" --remote-debugging-pipe 3<\"$2\" 4>\"$3\"";
        command.args(["-c", script, "sh"]).arg(folder).arg(&commands).arg(&messages);
        command.env("HOME", folder);
        let process = host.spawn(command).unwrap();
        // Opened for both directions, a pipe does not wait for its other end.
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut browser = Self {
            process,
            commands: open(&commands),
            messages: reader(open(&messages)),
            next: 0,
            session: None,
            complaints: Vec::new(),
            requested: Vec::new(),
            folder: folder.to_owned(),
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Calls a method of the protocol and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut text = message.to_string().into_bytes();
        text.push(0);
        self.commands.write_all(&text).unwrap();
        loop {
            let Ok(message) = self.messages.recv_timeout(PATIENCE) else {
                panic!("the browser does not answer {method}:\n{}", self.process.log_tail(20));
            };
            if message["id"] == self.next {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(parameters.to_string()),
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.complaints.push(parameters["entry"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                let address = parameters["request"]["url"].as_str().unwrap_or_default();
                self.requested.push(address.to_owned());
            }
            _ => {}
        }
    }

    /// Opens an address.
    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", &json!({"url": address}));
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &parameters);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// The text of the first element that a selector finds.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.value(&format!("document.querySelector({})?.textContent ?? ''", json!(selector)));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// How many elements a selector finds.
    pub(crate) fn count(&mut self, selector: &str) -> u64 {
        self.value(&format!("document.querySelectorAll({}).length", json!(selector))).as_u64().unwrap()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, what: &str, expression: &str) {
        let patience = Instant::now() + PATIENCE;
        while self.value(&format!("!!({expression})")) != json!(true) {
            if Instant::now() > patience {
                let text = self.value("document.body.innerText");
                panic!("waited in vain for {what}; the page says:\n{text}\n{:?}", self.complaints);
            }
            // One frame of the page; it cannot change in between.
            self.value("new Promise((next) => setTimeout(next, 50))");
        }
    }

    /// Focuses an element and presses a key, as somebody without a mouse would.
    pub(crate) fn press(&mut self, selector: &str, key: &str) {
        self.value(&format!("document.querySelector({}).focus()", json!(selector)));
        let text = if key == "Enter" { "\r" } else { "" };
        let code = if key == "Enter" { 13 } else { 27 };
        for kind in ["keyDown", "keyUp"] {
            let parameters = json!({"type": kind, "key": key, "code": key, "text": if kind == "keyDown" { text } else { "" },
                "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &parameters);
        }
    }

    /// Makes it a screen of this size, light or dark.
    pub(crate) fn become_screen(&mut self, width: u32, height: u32, scheme: &str) {
        let mobile = width < 600;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &scheme);
    }

    /// Keeps a picture for people, if `VIAMESH_PICTURES` names a folder for them.
    pub(crate) fn picture(&mut self, host: &Host, name: &str) {
        let Some(folder) = std::env::var_os("VIAMESH_PICTURES") else { return };
        // The map follows its size a frame later.
        self.value("new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))");
        let shot =
            self.call("Page.captureScreenshot", &json!({"format": "png", "captureBeyondViewport": true}));
        let encoded = self.folder.join(format!("{name}.base64"));
        std::fs::write(&encoded, shot["data"].as_str().unwrap()).unwrap();
        let mut decode = Command::new("sh");
        decode.args(["-c", "base64 -d \"$1\" > \"$2\"", "sh"]).arg(&encoded);
        decode.arg(PathBuf::from(folder).join(format!("{name}.png")));
        host.run(decode, PATIENCE).unwrap().successful().unwrap();
    }
}

/// Messages end with a zero octet.
fn reader(mut pipe: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut pending = Vec::new();
        let mut chunk = [0; 64 * 1024];
        while let Ok(length @ 1..) = pipe.read(&mut chunk) {
            pending.extend_from_slice(&chunk[..length]);
            while let Some(end) = pending.iter().position(|octet| *octet == 0) {
                let message: Vec<u8> = pending.drain(..=end).take(end).collect();
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}
