import OpenAI from 'openai';

import { answer, failedAs, options, prompt } from './question.mjs';

// A response is begun in the background, and asked for by the id that it was given until
// it is neither queued nor in progress, as the vendor's documentation does it.
await answer(
  async (q) => {
    const { responses } = new OpenAI({ baseURL: `${q.base_url}/openai/v1`, apiKey: q.credential });
    if (q.of) return said(await responses.retrieve(q.of));
    const begun = await responses.create({ model: 'respond', input: prompt(q), background: true }, options(q));
    if (q.cancel) await responses.cancel(begun.id);
    let made = begun;
    while (made.status === 'queued' || made.status === 'in_progress') {
      await new Promise((resolve) => setTimeout(resolve, 50));
      made = await responses.retrieve(begun.id);
    }
    return { ...said(made), id: begun.id, begun: begun.status, background: begun.background };
  },
  failedAs((error) => error.code),
);

function said(response) {
  return { text: response.output_text, ended: response.status, code: response.error?.code ?? '' };
}
