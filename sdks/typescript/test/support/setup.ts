import { execFileSync } from "node:child_process";

/** Fails at once where the program is missing that nearly every test starts. */
export default function setup(): void {
  const bin = process.env.SLUICE_BIN || "sluice";
  try {
    execFileSync(bin, ["--version"], { stdio: "ignore" });
  } catch (cause) {
    throw new Error(`cannot run ${bin}: set SLUICE_BIN to the path of the sluice program`, { cause });
  }
}
