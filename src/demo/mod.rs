//! `viamesh demo`: five cities on one machine, five real daemons in them, and what they do when links change.
//! Every number shown is measured in the run that shows it.

mod cities;
pub mod mesh;
mod shell;
mod stage;
mod steps;
mod window;

pub use cities::{CITIES, Cities, City};
pub use mesh::{Mesh, NodeSpec, ORGANIZATION, PORT};
pub use shell::shell;

use lab::{Capability, Capture, DemoReport, World};
use stage::Stage;
use std::path::{Path, PathBuf};

/// What to do.
#[derive(Debug, Clone, Default)]
pub struct DemoOptions {
    /// Stay up afterwards, so that a person can look around.
    pub keep: bool,
    /// Where to write what was measured.
    pub json: Option<PathBuf>,
    /// Where to write every frame between the cities as pcap, with the keys to decrypt them beside it.
    pub capture: Option<PathBuf>,
}

/// The running demo.
struct Demo {
    world: World,
    cities: Cities,
    mesh: Mesh,
    stage: Stage,
    report: DemoReport,
    capture: Option<Capture>,
}

/// Runs the demo.
///
/// # Errors
/// In words: what was tried, what went wrong, and what to do.
pub fn run(options: &DemoOptions) -> Result<(), String> {
    become_able()?;
    let binary =
        std::env::current_exe().map_err(|error| format!("cannot find the viamesh program: {error}"))?;
    let mut demo = Demo::build(&binary, options.capture.as_deref())?;
    demo.play()?;
    if let Some(path) = &options.json {
        demo.report.write(path).map_err(|error| error.to_string())?;
    }
    if options.keep {
        demo.revive()?;
        shell::keep(&demo.world, &demo.mesh, &demo.stage)?;
    }
    Ok(())
}

/// Worlds need root, or a user namespace of one's own.
fn become_able() -> Result<(), String> {
    match World::probe() {
        Capability::Ready => Ok(()),
        Capability::UserNamespace => lab::enter_user_namespace().map_err(|error| error.to_string()),
        Capability::Impossible { reason, advice } => Err(format!("{reason}\nhelp: {advice}")),
    }
}

impl Demo {
    fn build(binary: &Path, capture: Option<&Path>) -> Result<Self, String> {
        let stage = Stage::new();
        stage.title("viamesh: five cities, one mesh");
        let world = World::new().map_err(|error| error.to_string())?;
        let cities = Cities::build(&world).map_err(|error| error.to_string())?;
        let directory = world.directory().join("mesh");
        let specs: Vec<_> = cities
            .members()
            .map(|(city, host, interface)| {
                let page = directory.join(city.name).join("page.sock");
                let spec = steps::node_spec(city, host, interface, capture);
                (host.clone(), spec.with(&format!("page: {}", page.display())))
            })
            .collect();
        let capture = capture.map(|file| cities.internet.capture(file)).transpose();
        let capture = capture.map_err(|error| error.to_string())?;
        let mesh = Mesh::prepare(&directory, binary, &specs)?;
        Ok(Self { world, cities, mesh, stage, report: DemoReport::default(), capture })
    }

    fn play(&mut self) -> Result<(), String> {
        self.tunnels()?;
        self.relay()?;
        self.back_to_direct()?;
        self.journey()?;
        self.failover()?;
        self.end_capture()?;
        self.throughput()
    }

    /// The cable of the last step is another link, with gigabytes of the same.
    fn end_capture(&mut self) -> Result<(), String> {
        let Some(capture) = self.capture.take() else { return Ok(()) };
        let file = capture.path().display().to_string();
        let frames = capture.finish().map_err(|error| error.to_string())?;
        self.stage.heading("What crossed the links between the cities");
        self.stage.result(&format!("frames in {file}"), &frames.to_string());
        self.stage.remark(
            "IKE keys for Wireshark are beside it, one file a city (.keys), ESP keys too (.keys.esp)",
        );
        Ok(())
    }
}
