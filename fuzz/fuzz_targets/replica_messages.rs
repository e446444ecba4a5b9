//! Messages of other nodes, each with the right checksum, for a replica that follows: what decodes is encoded
//! to the same bytes, and is taken or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_fuzz::framing::records;
use sluice_replica::{Config, Durable, Members, NodeId, PROTOCOL_NEWEST, Replica, wire};

fuzz_target!(|input: &[u8]| {
    let [one, two, three] = [1, 2, 3].map(|id| NodeId::new(id).expect("not 0"));
    let config = Config { id: one, heartbeat_ticks: 2, election_ticks: 10, quiet_ticks: 40 };
    let members = Members::new(vec![one, two, three], Vec::new(), 3).expect("the members are right");
    let mut replica = Replica::new(&config, &Durable::first(members), 0).expect("the state is right");
    for content in records(input) {
        let mut bytes = content.to_vec();
        bytes.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
        let Ok(message) = wire::decode(&bytes, PROTOCOL_NEWEST) else { continue };
        let mut again = Vec::new();
        wire::encode(&message, PROTOCOL_NEWEST, &mut again);
        assert_eq!(again, bytes);
        let _ = replica.step(&message);
        replica.tick();
        // The disk syncs behind messages with an even term.
        while let Some(ready) = replica.ready() {
            if message.term % 2 == 0 {
                ready.write.iter().for_each(|write| replica.persisted(write.number));
            }
        }
        assert_eq!(replica.audit(), Ok(()));
    }
});
