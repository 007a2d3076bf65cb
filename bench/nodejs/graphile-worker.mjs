import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { batches, input, phase, tally, url } from "./driver.mjs";

const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString: url, logger });
await utils.migrate();
await phase("add", () =>
  batches((numbers) => utils.addJobs(numbers.map((n) => ({ identifier: "bench", payload: input, jobKey: `job-${n}` })))),
);

// Batching as its page on performance has it: a local queue, and completions that
// are gathered. The batch of completions is flushed when the runner stops.
const finished = tally();
await phase("drain", async () => {
  const runner = await run({
    taskList: { bench: async () => finished.done() },
    preset: {
      worker: {
        connectionString: url, concurrentJobs: 24, maxPoolSize: 25, logger,
        localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0,
      },
    },
    noHandleSignals: true,
  });
  await finished.all;
  await runner.stop();
});
await utils.release();
process.exit(0);
