//! Names of hosts, and the addresses behind them.
//!
//! A look-up blocks a thread for as long as it takes, which nobody can cut short. So look-ups have threads of
//! their own, [`THREADS_MAX`] at most, each in use until its look-up has ended, whoever still waits for it.
//! Those who ask for the same name wait for the same look-up: a queue, whose endpoint has one name, takes one
//! thread at most, and a name that does not answer holds up nobody who asks for another one.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, watch};

/// Threads that look up names.
const THREADS_MAX: usize = 16;

/// The source of addresses.
pub trait Resolve: Send + Sync + Debug {
    /// Looks up the addresses of a host, each with the port. Blocks.
    ///
    /// # Errors
    /// Why there are none.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Resolve for System {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

/// Host and port.
type Name = (Box<str>, u16);
/// Addresses of a name, or why there are none.
type Found = Result<Arc<[SocketAddr]>, Arc<str>>;

/// The look-ups of a node.
#[derive(Debug)]
pub(crate) struct LookUps {
    threads: Arc<Semaphore>,
    running: Arc<Running>,
}

/// Look-ups that have not ended. One whose sender is gone has failed, and is nobody's.
#[derive(Debug, Default)]
struct Running(Mutex<BTreeMap<Name, watch::Receiver<Option<Found>>>>);

impl Running {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, watch::Receiver<Option<Found>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a name that nobody waits for; tells whether it was one.
    fn forget_unwanted(&self, name: &Name, tell: &watch::Sender<Option<Found>>) -> bool {
        let mut running = self.lock();
        // The one that is kept here.
        let is_unwanted = tell.receiver_count() == 1;
        if is_unwanted {
            running.remove(name);
        }
        is_unwanted
    }
}

impl LookUps {
    pub(crate) fn new() -> LookUps {
        LookUps { threads: Arc::new(Semaphore::new(THREADS_MAX)), running: Arc::default() }
    }

    /// Looks up the addresses of a host, each with the port. Dropping this leaves the look-up to others.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) async fn find(
        &self,
        resolver: &Arc<dyn Resolve>,
        host: &str,
        port: u16,
    ) -> Result<Arc<[SocketAddr]>, Arc<str>> {
        let mut found = self.join(resolver, (host.into(), port));
        let given_up = || Err("the look-up was given up".into());
        match found.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_else(given_up),
            Err(_) => given_up(),
        }
    }

    /// Joins the look-up of a name, or begins it.
    fn join(&self, resolver: &Arc<dyn Resolve>, name: Name) -> watch::Receiver<Option<Found>> {
        let mut running = self.running.lock();
        if let Some(found) = running.get(&name).filter(|found| found.has_changed().is_ok()) {
            return found.clone();
        }
        let (tell, found) = watch::channel(None);
        running.insert(name.clone(), found.clone());
        let (threads, running) = (Arc::clone(&self.threads), Arc::clone(&self.running));
        let resolver = Arc::clone(resolver);
        tokio::spawn(async move {
            // Never closed.
            let Ok(turn) = threads.acquire_owned().await else { return };
            if running.forget_unwanted(&name, &tell) {
                return;
            }
            let look_up = move || {
                let found = resolver.resolve(&name.0, name.1);
                running.lock().remove(&name);
                tell.send_replace(Some(found.map(Arc::from).map_err(|error| error.to_string().into())));
                drop(turn);
            };
            // Without a thread everything above is dropped, and those who wait hear of it.
            let begun = std::thread::Builder::new().name("look-up".to_owned()).spawn(look_up);
            if let Err(error) = begun {
                tracing::warn!(%error, "no thread for the look-up of a host");
            }
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    const SOON: Duration = Duration::from_millis(50);
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A resolver that answers for hosts `slow...` when it is told to, and counts.
    #[derive(Debug)]
    struct Gated {
        go: Mutex<mpsc::Receiver<()>>,
        asked: AtomicUsize,
    }

    impl Resolve for Gated {
        fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            match host {
                "bad" => panic!("a resolver that panics"),
                _ if host.starts_with("slow") => self.go.lock().unwrap().recv().unwrap(),
                _ => {}
            }
            Ok(vec![([192, 0, 2, 1], port).into()])
        }
    }

    fn gated() -> (mpsc::Sender<()>, Arc<Gated>, Arc<dyn Resolve>) {
        let (open, go) = mpsc::channel();
        let gated = Arc::new(Gated { go: Mutex::new(go), asked: AtomicUsize::new(0) });
        (open, Arc::clone(&gated), gated)
    }

    #[tokio::test]
    async fn a_name_takes_one_thread_however_often_it_is_asked_for() {
        let (open, gated, resolver) = gated();
        let look_ups = Arc::new(LookUps::new());
        let (same, asking) = (Arc::clone(&look_ups), Arc::clone(&resolver));
        let waiting = tokio::spawn(async move { same.find(&asking, "slow", 1).await });
        // Nobody may have waited long enough for it before.
        while gated.asked.load(Ordering::Relaxed) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..3 * THREADS_MAX {
            let in_vain = timeout(Duration::from_millis(1), look_ups.find(&resolver, "slow", 1)).await;
            assert!(in_vain.is_err());
        }
        let other = timeout(PATIENCE, look_ups.find(&resolver, "quick", 2)).await.unwrap();
        assert_eq!(&*other.unwrap(), [([192, 0, 2, 1], 2).into()]);
        assert_eq!(gated.asked.load(Ordering::Relaxed), 2);
        open.send(()).unwrap();
        assert!(timeout(PATIENCE, waiting).await.unwrap().unwrap().is_ok());
    }

    #[tokio::test]
    async fn threads_are_bounded_and_names_that_nobody_waits_for_get_none() {
        let (open, gated, resolver) = gated();
        let look_ups = LookUps::new();
        for number in 0..2 * THREADS_MAX {
            let name = format!("slow{number}");
            assert!(timeout(SOON, look_ups.find(&resolver, &name, 1)).await.is_err());
        }
        assert_eq!(gated.asked.load(Ordering::Relaxed), THREADS_MAX);
        (0..THREADS_MAX).for_each(|_| open.send(()).unwrap());
        assert!(timeout(PATIENCE, look_ups.find(&resolver, "quick", 1)).await.unwrap().is_ok());
        assert_eq!(gated.asked.load(Ordering::Relaxed), THREADS_MAX + 1);
        let forgotten = async {
            while !look_ups.running.lock().is_empty() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, forgotten).await.unwrap();
        assert_eq!(gated.asked.load(Ordering::Relaxed), THREADS_MAX + 1);
    }

    #[tokio::test]
    async fn a_look_up_that_fails_is_told_and_done_anew() {
        let (_open, gated, resolver) = gated();
        let look_ups = LookUps::new();
        for asked in 1..3 {
            let found = timeout(PATIENCE, look_ups.find(&resolver, "bad", 1)).await.unwrap();
            assert_eq!(&*found.unwrap_err(), "the look-up was given up");
            assert_eq!(gated.asked.load(Ordering::Relaxed), asked);
        }
    }
}
