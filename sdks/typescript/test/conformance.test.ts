import { conformance } from "./support/conformance.js";
import { serve } from "./support/server.js";

conformance(1, () => serve());
