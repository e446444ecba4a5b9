import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/setup.ts",
    // The tests share two processors with servers of their own.
    maxWorkers: 2,
    // A test looks at what is kept in memory.
    execArgv: ["--expose-gc"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
