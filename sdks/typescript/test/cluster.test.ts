import { conformance } from "./support/conformance.js";
import { startCluster } from "./support/cluster.js";

conformance(3, startCluster);
