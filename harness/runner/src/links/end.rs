//! One descriptor at work: asked once, of the runtime or of the kernel, and never waited for.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    task::{Context, Poll},
};

use tokio::io::{Interest, unix::AsyncFd};

use crate::os;

/// Whom to ask whether there is something: the runtime, which will wake us, or the kernel, which always knows.
pub(crate) enum Ask<'a, 'b> {
    Runtime(&'a mut Context<'b>),
    Kernel,
}

/// A descriptor that the runtime watches, or one, such as a file, that is always ready.
pub(super) enum End {
    Polled(AsyncFd<OwnedFd>),
    Plain(OwnedFd),
}

impl End {
    pub(super) fn reading(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Interest::READABLE)
    }

    pub(super) fn writing(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Interest::WRITABLE)
    }

    /// For a socket, which is read and written.
    pub(super) fn both(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Interest::READABLE | Interest::WRITABLE)
    }

    #[expect(
        deprecated,
        reason = "deprecated for types that may close their descriptor; an `OwnedFd` does not"
    )]
    fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        match AsyncFd::try_with_interest(fd, interest) {
            Ok(polled) => Ok(Self::Polled(polled)),
            Err(refused) => match refused.into_parts() {
                (fd, error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Self::Plain(fd)),
                (_, error) => Err(error),
            },
        }
    }

    pub(super) fn read(&self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<io::Result<usize>> {
        self.attempt(ask, AsyncFd::poll_read_ready, |fd| os::read(fd, into))
    }

    pub(super) fn write(&self, ask: &mut Ask<'_, '_>, bytes: &[u8]) -> Option<io::Result<usize>> {
        self.attempt(ask, AsyncFd::poll_write_ready, |fd| os::write(fd, bytes))
    }

    /// Takes the next connection from a socket that listens.
    pub(super) fn accept(&self, ask: &mut Ask<'_, '_>) -> Option<io::Result<OwnedFd>> {
        self.attempt(ask, AsyncFd::poll_read_ready, os::accept)
    }

    /// Tries until it is done or would block. Only then has the runtime been asked to wake us.
    fn attempt<'a, T>(
        &'a self,
        ask: &mut Ask<'_, '_>,
        poll: impl Fn(
            &'a AsyncFd<OwnedFd>,
            &mut Context<'_>,
        ) -> Poll<io::Result<tokio::io::unix::AsyncFdReadyGuard<'a, OwnedFd>>>,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        loop {
            let tried = match (self, &mut *ask) {
                (Self::Polled(fd), Ask::Runtime(cx)) => match poll(fd, cx) {
                    Poll::Pending => return None,
                    Poll::Ready(Err(error)) => return Some(Err(error)),
                    Poll::Ready(Ok(mut ready)) => match ready.try_io(|fd| call(fd.as_fd())) {
                        Ok(tried) => tried,
                        Err(_would_block) => continue,
                    },
                },
                _ => call(self.as_fd()),
            };
            match tried {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                tried => return Some(tried),
            }
        }
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Polled(fd) => fd.as_fd(),
            Self::Plain(fd) => fd.as_fd(),
        }
    }
}

/// An end that can no longer be read is at its end, whatever the reason.
pub(super) fn read_until_end(end: &mut Option<End>, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize> {
    let read = end.as_ref()?.read(ask, into)?.unwrap_or(0);
    if read == 0 {
        *end = None;
    }
    Some(read)
}
