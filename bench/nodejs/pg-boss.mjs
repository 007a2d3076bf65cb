import { PgBoss } from "pg-boss";
import { batch, batches, input, phase, tally, url } from "./driver.mjs";

const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
boss.on("error", (error) => {
  throw error;
});
await boss.start();
await boss.createQueue("bench");
await phase("add", () => batches((numbers) => boss.insert("bench", numbers.map(() => ({ data: input })))));

// Whole batches, fetched one after the other while they come full; the shortest
// interval that it takes otherwise. Each job keeps a result of its own. Stopping
// waits until what was handled is written down.
const finished = tally();
await phase("drain", async () => {
  const options = { batchSize: batch, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, perJobResults: true };
  await boss.work("bench", options, async (jobs) => {
    finished.done(jobs.length);
    return jobs.map(({ id }) => ({ id, status: "completed", output: { ok: true } }));
  });
  await finished.all;
  await boss.stop({ graceful: true });
});
process.exit(0);
