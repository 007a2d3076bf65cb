import OpenAI from 'openai';

import { answer, failedAs, prompt } from './question.mjs';

// Five samples of one question, wanted as five: equal calls at once, without a key.
await answer(
  async (q) => {
    const client = new OpenAI({ baseURL: `${q.base_url}/openai/v1`, apiKey: q.credential });
    const request = { model: 'chat', messages: [{ role: 'user', content: prompt(q) }] };
    const all = await Promise.all(Array.from({ length: 5 }, () => client.chat.completions.create(request)));
    return { text: all.map((completion) => completion.id).join(' ') };
  },
  failedAs((error) => error.code),
);
