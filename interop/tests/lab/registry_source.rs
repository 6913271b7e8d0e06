//! Registries that come from a directory, the web or etcd: what passes every check acts by itself, anything else
//! changes nothing.

use crate::scene::{Internet, PATIENCE, QUICK, Scene, binary};
use crate::web_server::WebServer;
use lab::Process;
use std::path::PathBuf;
use std::process::Command;
use viamesh::config::key;

/// Alpha and bravo; alpha's registry comes from elsewhere, by these lines of its node file.
fn with_registry(scene: &Scene, lines: &str) {
    let path = &scene.mesh.node("alpha").config;
    let text = std::fs::read_to_string(path).unwrap();
    let kept: String =
        text.lines().filter(|line| !line.starts_with("registry:")).map(|line| format!("{line}\n")).collect();
    std::fs::write(path, kept + lines).unwrap();
}

fn prepared() -> Scene {
    Internet::new(&["alpha", "bravo"], 10).prepare(|site| site.node().with(QUICK))
}

fn registry_text(scene: &Scene) -> String {
    std::fs::read_to_string(scene.mesh.directory.join("registry.yaml")).unwrap()
}

/// The registry with one node more, which nobody runs.
fn with_charlie(text: &str) -> String {
    let pem = key::public_pem(&key::generate().unwrap().verifying_key()).unwrap();
    let pem: String = pem.lines().map(|line| format!("          {line}\n")).collect();
    format!(
        "{text}  - common_name: charlie\n    endpoints: [{{ serial_number: \"0\", address_family: ip4, port: 13000 }}]\n    \
         remarks:\n      viamesh:\n        public_key: |\n{pem}"
    )
}

fn knows(scene: &Scene, node: &str) -> bool {
    scene
        .mesh
        .status("alpha")
        .is_ok_and(|status| status.nodes.iter().any(|known| known.node.rsplit('/').next() == Some(node)))
}

fn trouble(scene: &Scene, code: &str) -> bool {
    scene.mesh.status("alpha").is_ok_and(|status| status.problems.iter().any(|problem| problem.code == code))
}

fn tunnel(scene: &Scene) -> Vec<String> {
    scene.associations("alpha").associations.into_iter().map(|sa| sa.initiator_spi).collect()
}

fn started(scene: &mut Scene) -> Vec<String> {
    scene.mesh.start().unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
    scene.wait("one tunnel", || tunnel(scene).len() == 1);
    tunnel(scene)
}

#[test]
fn a_directory_of_files_is_one_registry_and_its_changes_act_by_themselves() {
    let mut scene = prepared();
    let parts = scene.mesh.directory.join("registry.d");
    std::fs::create_dir(&parts).unwrap();
    let text = registry_text(&scene);
    std::fs::write(parts.join("10-lab.yaml"), &text).unwrap();
    std::fs::write(parts.join("readme.txt"), "not: [a registry").unwrap();
    with_registry(&scene, &format!("registry: {}\n", parts.display()));
    let before = started(&mut scene);

    let more = with_charlie("- organization: more\n  nodes:\n");
    std::fs::write(parts.join(".20-more.yaml.swp"), &more).unwrap();
    std::fs::write(parts.join("20-more.yaml"), &more).unwrap();
    scene.wait("charlie", || knows(&scene, "charlie"));
    // Mistakes change nothing and are told; so is their end.
    std::fs::write(parts.join("20-more.yaml"), "- organisation: more\n").unwrap();
    scene.wait("word of the mistake", || trouble(&scene, "registry/refused"));
    assert!(
        knows(&scene, "charlie") && scene.log("alpha").contains("20-more.yaml:1"),
        "{}",
        scene.log("alpha")
    );
    std::fs::remove_file(parts.join("20-more.yaml")).unwrap();
    scene.wait("charlie's end", || !knows(&scene, "charlie") && !trouble(&scene, "registry/refused"));
    assert_eq!(tunnel(&scene), before);
}

/// A registry and its signature, as a web server has them.
fn publish(scene: &Scene, server: &WebServer, text: &str, version: u64) {
    let file = scene.mesh.directory.join("served.yaml");
    std::fs::write(&file, text).unwrap();
    let (file_name, version) = (file.display().to_string(), version.to_string());
    let key = signing_key(scene).display().to_string();
    scene
        .viamesh("bravo", &["registry", "sign", &file_name, "--key", &key, "--version", &version])
        .successful()
        .unwrap();
    let signature = std::fs::read(format!("{file_name}.sig")).unwrap();
    server.put("/registry.yaml", text.as_bytes());
    server.put("/registry.yaml.sig", &signature);
}

fn signing_key(scene: &Scene) -> PathBuf {
    let file = scene.mesh.directory.join("signer.pem");
    if !file.exists() {
        key::write_new(&file, &key::generate().unwrap()).unwrap();
    }
    file
}

#[test]
fn a_signed_registry_on_the_web_is_followed_and_nothing_else_is() {
    let mut scene = prepared();
    let server = WebServer::start(scene.host("bravo"), scene.site("bravo").underlay.v4.unwrap(), 8080);
    let address = format!("{}/registry.yaml", server.address());
    let public = key::public_pem(&key::load(&signing_key(&scene)).unwrap().verifying_key()).unwrap();
    let public: String = public.lines().map(|line| format!("  {line}\n")).collect();
    let text = registry_text(&scene);
    publish(&scene, &server, &text, 7);
    with_registry(&scene, &format!("registry: {address}\nregistry_interval: 1s\nregistry_key: |\n{public}"));
    let before = started(&mut scene);
    scene.wait("questions that cost nothing", || server.not_modified() > 1);
    let report = scene.document("alpha", &["registry"]);
    scene.wait("the version", || scene.document("alpha", &["registry"])["version"] == 7);
    assert_eq!(report["source"], address.as_str());

    publish(&scene, &server, &with_charlie(&text), 8);
    scene.wait("charlie", || knows(&scene, "charlie"));
    // An older one, correctly signed: somebody plays back what once was.
    publish(&scene, &server, &text, 7);
    scene.wait("word of the old version", || trouble(&scene, "registry/refused"));
    assert!(knows(&scene, "charlie"));
    // One that somebody changed on the way.
    publish(&scene, &server, &with_charlie(&text), 9);
    server.put("/registry.yaml", text.as_bytes());
    scene.wait("word of the signature", || {
        let status = scene.mesh.status("alpha").unwrap();
        status.problems.iter().any(|problem| problem.text.contains("signature"))
    });
    assert!(knows(&scene, "charlie"));
    // The server is gone, and the daemon starts anew: the last good one is kept here.
    drop(server);
    scene.wait("word of the silence", || trouble(&scene, "registry/unreachable"));
    assert_eq!(tunnel(&scene), before);
    scene.mesh.kill("alpha");
    scene.mesh.start_node("alpha").unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
    assert!(knows(&scene, "charlie"));
}

/// An etcd at bravo's place.
struct Etcd {
    process: Process,
    endpoint: String,
    scene_directory: PathBuf,
    /// What the client needs to believe it.
    trust: Vec<String>,
}

impl Etcd {
    fn start(scene: &Scene, data: &str) -> Self {
        Self::start_with(scene, data, "http", &[], Vec::new())
    }

    /// With a certificate for its address; also its authority in PEM.
    fn start_with_tls(scene: &Scene, data: &str) -> (Self, String) {
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&authority_key).unwrap().pem();
        let issuer = rcgen::Issuer::new(params, authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let name = scene.site("bravo").underlay.v4.unwrap().to_string();
        let certificate =
            rcgen::CertificateParams::new(vec![name]).unwrap().signed_by(&key, &issuer).unwrap();
        let file = |name: &str, text: &str| {
            let path = scene.mesh.directory.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (chain, key) = (file("etcd.crt", &certificate.pem()), file("etcd.key", &key.serialize_pem()));
        let trust = vec!["--cacert".to_owned(), file("etcd-ca.crt", &authority)];
        let server = ["--cert-file", &chain, "--key-file", &key];
        (Self::start_with(scene, data, "https", &server, trust), authority)
    }

    fn start_with(scene: &Scene, data: &str, scheme: &str, server: &[&str], trust: Vec<String>) -> Self {
        let endpoint = format!("{scheme}://{}:2379", scene.site("bravo").underlay.v4.unwrap());
        let scene_directory = scene.mesh.directory.clone();
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(scene_directory.join(data));
        command.args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint]).args(server);
        let process = scene.host("bravo").spawn(command).unwrap();
        let etcd = Self { process, endpoint, scene_directory, trust };
        scene.wait("etcd", || etcd.run(scene, &["endpoint", "health"]));
        etcd
    }

    fn run(&self, scene: &Scene, arguments: &[&str]) -> bool {
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.endpoint])
            .args(&self.trust)
            .args(arguments);
        scene.host("bravo").run(command, PATIENCE).unwrap().status.success()
    }

    /// Puts a value: by a file, since it has many lines.
    fn put(&self, scene: &Scene, key: &str, value: &str) {
        let file = self.scene_directory.join("value");
        std::fs::write(&file, value).unwrap();
        let trust = self.trust.join(" ");
        let script = format!("etcdctl --endpoints {} {trust} put {key} < {}", self.endpoint, file.display());
        let mut command = Command::new("sh");
        command.env("ETCDCTL_API", "3").args(["-c", &script]);
        scene.host("bravo").run(command, PATIENCE).unwrap().successful().unwrap();
    }
}

#[test]
fn a_registry_in_etcd_is_watched() {
    let mut scene = prepared();
    let etcd = Etcd::start(&scene, "etcd");
    let text = registry_text(&scene);
    for filler in 0..5 {
        etcd.put(&scene, "elsewhere", &filler.to_string());
    }
    etcd.put(&scene, "viamesh/10-lab", &text);
    let source = etcd.endpoint.replacen("http", "etcd", 1);
    with_registry(&scene, &format!("registry: {source}/viamesh/\n"));
    let before = started(&mut scene);
    etcd.put(&scene, "viamesh/20-more", &with_charlie("- organization: more\n  nodes:\n"));
    scene.wait("charlie", || knows(&scene, "charlie"));
    etcd.put(&scene, "viamesh/20-more", "- nonsense\n");
    scene.wait("word of the mistake", || trouble(&scene, "registry/refused"));
    assert!(knows(&scene, "charlie"));
    assert!(etcd.run(&scene, &["del", "viamesh/20-more"]));
    scene.wait("charlie's end", || !knows(&scene, "charlie") && !trouble(&scene, "registry/refused"));

    // Unreachable, then another one that knows less: rolled back.
    etcd.process.kill();
    drop(etcd);
    scene.wait("word of the silence", || trouble(&scene, "registry/unreachable"));
    let younger = Etcd::start(&scene, "etcd-2");
    younger.put(&scene, "viamesh/10-lab", &with_charlie(&text));
    scene.wait("word of the old version", || trouble(&scene, "registry/refused"));
    assert!(!knows(&scene, "charlie"));
    assert_eq!(tunnel(&scene), before);
    // It even starts without its etcd.
    younger.process.kill();
    scene.mesh.kill("alpha");
    scene.mesh.start_node("alpha").unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
}

#[test]
fn an_etcd_with_tls_is_believed_if_the_authority_vouches_for_it() {
    let mut scene = prepared();
    let (etcd, authority) = Etcd::start_with_tls(&scene, "etcd");
    etcd.put(&scene, "viamesh/10-lab", &registry_text(&scene));
    let source = etcd.endpoint.replacen("https", "etcds", 1);
    // Nobody on this host vouches for that certificate.
    with_registry(&scene, &format!("registry: {source}/viamesh/\n"));
    let mut command = Command::new(binary());
    command.arg("run").arg("--config").arg(&scene.mesh.node("alpha").config);
    let output = scene.host("alpha").run(command, PATIENCE).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("certificate"), "{}", output.stderr);

    let authority: String = authority.lines().map(|line| format!("  {line}\n")).collect();
    with_registry(&scene, &format!("registry: {source}/viamesh/\nregistry_authority: |\n{authority}"));
    started(&mut scene);
    etcd.put(&scene, "viamesh/20-more", &with_charlie("- organization: more\n  nodes:\n"));
    scene.wait("charlie", || knows(&scene, "charlie"));
}

#[test]
fn a_first_start_without_a_source_may_be_tried_again() {
    let scene = prepared();
    with_registry(&scene, "registry: etcd://127.0.0.1:1/viamesh\n");
    let mut command = Command::new(binary());
    command.arg("run").arg("--config").arg(&scene.mesh.node("alpha").config);
    let output = scene.host("alpha").run(command, PATIENCE).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("config/registry-unreachable"), "{}", output.stderr);
}
