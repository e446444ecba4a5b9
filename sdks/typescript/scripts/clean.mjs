import { rmSync } from "node:fs";

// Files of an earlier build that are no more are not to be packed.
rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true });
