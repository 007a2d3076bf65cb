import Anthropic from '@anthropic-ai/sdk';

import { answer, failedAs, options, orderAndSeverity, orderOnly, patience, prompt } from './question.mjs';

await answer(
  async (q) => {
    const client = new Anthropic({ baseURL: `${q.base_url}/anthropic`, apiKey: q.credential, ...patience(q) });
    const request = { model: 'message', max_tokens: 500, messages: [{ role: 'user', content: prompt(q) }] };
    if (q.ask === 'tool') request.tools = [{ name: 'look_up_order', input_schema: orderOnly }];
    if (q.ask === 'schema') request.output_config = { format: { type: 'json_schema', schema: orderAndSeverity } };
    const message = q.stream
      ? await client.messages.stream(request, options(q)).finalMessage()
      : await client.messages.create(request, options(q));
    const call = message.content.find((block) => block.type === 'tool_use');
    return {
      text: message.content.map((block) => block.text ?? '').join(''),
      tool: call?.name ?? '',
      arguments: call ? JSON.stringify(call.input) : '',
    };
  },
  failedAs((error) => error.error?.code), // error.error is the whole problem
);
