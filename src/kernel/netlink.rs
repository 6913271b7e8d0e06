//! Route netlink as two verbs: dump and execute.

use std::io;

use futures_util::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::proto::sys::{AsyncSocket, SocketAddr, protocols::NETLINK_ROUTE};
use rtnetlink::proto::{ConnectionHandle, new_connection};

/// Requests in flight at once: each acknowledgement takes room in our receive buffer.
const WINDOW: usize = 64;

/// How a request treats what is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Refuse if it exists.
    Create,
    /// Replace it, in one step.
    Replace,
    /// Change or delete what exists.
    Existing,
}

impl Mode {
    fn flags(self) -> u16 {
        NLM_F_REQUEST
            | NLM_F_ACK
            | match self {
                Self::Create => NLM_F_CREATE | NLM_F_EXCL,
                Self::Replace => NLM_F_CREATE | NLM_F_REPLACE,
                Self::Existing => 0,
            }
    }
}

/// A netlink socket whose driver runs as a task of the current runtime.
#[derive(Debug)]
pub(super) struct Netlink {
    handle: ConnectionHandle<RouteNetlinkMessage>,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Netlink {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let (mut connection, handle, _) = new_connection(NETLINK_ROUTE)?;
        // Lets the kernel filter dumps (4.20 and later); without it we filter ourselves.
        let _ = connection.socket_mut().socket_mut().set_netlink_get_strict_chk(true);
        Ok(Self { handle, driver: tokio::spawn(connection) })
    }

    /// All objects that a dump request yields.
    pub(super) async fn dump(&self, request: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.ask(request, NLM_F_REQUEST | NLM_F_DUMP).await
    }

    /// The object that a get request yields, if it exists.
    pub(super) async fn get(&self, request: RouteNetlinkMessage) -> io::Result<Option<RouteNetlinkMessage>> {
        Ok(self.ask(request, NLM_F_REQUEST | NLM_F_ACK).await?.into_iter().next())
    }

    /// Changes one object.
    pub(super) async fn execute(&self, request: RouteNetlinkMessage, mode: Mode) -> io::Result<()> {
        self.ask(request, mode.flags()).await.map(|_| ())
    }

    /// Changes many objects in order, without waiting for each; the results come in the same order.
    pub(super) async fn execute_all(
        &self,
        requests: Vec<(RouteNetlinkMessage, Mode)>,
    ) -> Vec<io::Result<()>> {
        let mut results = Vec::with_capacity(requests.len());
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let sent: Vec<_> = requests
                .by_ref()
                .take(WINDOW)
                .map(|(request, mode)| self.send(request, mode.flags()))
                .collect();
            for answers in sent {
                results.push(match answers {
                    Ok(answers) => collect(answers).await.map(|_| ()),
                    Err(error) => Err(error),
                });
            }
        }
        results
    }

    async fn ask(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        collect(self.send(request, flags)?).await
    }

    /// Sends a request to the kernel, which has address 0.
    fn send(
        &self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<impl StreamExt<Item = NetlinkMessage<RouteNetlinkMessage>> + Unpin + use<>> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = flags;
        self.handle
            .request(message, SocketAddr::new(0, 0))
            .map_err(|_| io::Error::other("the netlink connection is closed"))
    }
}

async fn collect(
    mut answers: impl StreamExt<Item = NetlinkMessage<RouteNetlinkMessage>> + Unpin,
) -> io::Result<Vec<RouteNetlinkMessage>> {
    let mut objects = Vec::new();
    while let Some(answer) = answers.next().await {
        match answer.payload {
            NetlinkPayload::InnerMessage(object) => objects.push(object),
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            _ => {}
        }
    }
    Ok(objects)
}

/// Whether the kernel says that the object is not there: deleted already, or its table never existed.
pub(super) fn is_missing(error: &io::Error) -> bool {
    const ENOENT: i32 = libc::ENOENT;
    const ESRCH: i32 = libc::ESRCH;
    const ENODEV: i32 = libc::ENODEV;
    const EADDRNOTAVAIL: i32 = libc::EADDRNOTAVAIL;
    matches!(error.raw_os_error(), Some(ENOENT | ESRCH | ENODEV | EADDRNOTAVAIL))
}

/// Whether the kernel says that the object is there already.
pub(super) fn is_present(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EEXIST)
}
