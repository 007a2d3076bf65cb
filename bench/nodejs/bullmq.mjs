import { Queue, Worker } from "bullmq";
import { batches, input, phase, tally, url } from "./driver.mjs";

const [host, port] = url.split(":");
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const name = `bench-${process.pid}`;
const queue = new Queue(name, { connection });
await queue.waitUntilReady();
await phase("add", () =>
  batches((numbers) => queue.addBulk(numbers.map((n) => ({ name: "bench", data: input, opts: { jobId: `job-${n}` } })))),
);

// As many at once as its guide has for work that waits for others. "completed" comes
// once Redis has answered.
const finished = tally();
await phase("drain", async () => {
  const worker = new Worker(name, async () => ({ ok: true }), { connection, concurrency: 100 });
  worker.on("completed", () => finished.done());
  await finished.all;
  await worker.close();
});
await queue.obliterate({ force: true });
await queue.close();
process.exit(0);
