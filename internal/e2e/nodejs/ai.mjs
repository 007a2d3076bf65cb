import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, Output, RetryError, streamText, tool } from 'ai';

import { answer, headers, orderAndSeverity, orderOnly, prompt } from './question.mjs';

await answer(
  async (q) => {
    const onejob = createOpenAICompatible({
      name: 'onejob',
      baseURL: `${q.base_url}/openai/v1`,
      apiKey: q.credential,
      supportsStructuredOutputs: true,
    });
    const request = { model: onejob('chat'), prompt: prompt(q), headers: headers(q) };
    if (q.timeout_ms) request.abortSignal = AbortSignal.timeout(q.timeout_ms);
    if (q.ask === 'tool') request.tools = { look_up_order: tool({ inputSchema: jsonSchema(orderOnly) }) };
    if (q.ask === 'schema') request.output = Output.object({ schema: jsonSchema(orderAndSeverity), name: 'ticket' });
    if (q.stream) return await streamed(request);
    const result = await generateText(request);
    const call = result.toolCalls[0];
    return { text: result.text, tool: call?.toolName ?? '', arguments: call ? JSON.stringify(call.input) : '' };
  },
  (error) => {
    const last = RetryError.isInstance(error) ? error.lastError : error;
    const said = { error: error.name, status: 0, code: typeof last.code === 'string' ? last.code : '', message: error.message, job: '', location: '' };
    if (!APICallError.isInstance(last)) return said;
    return {
      ...said,
      status: last.statusCode ?? 0,
      code: last.data?.error?.code ?? '',
      job: last.responseHeaders?.['onejob-job-id'] ?? '',
      location: last.responseHeaders?.location ?? '',
    };
  },
);

// streamText keeps errors to itself unless its parts are read.
async function streamed(request) {
  const said = { text: '', tool: '', arguments: '' };
  const { fullStream } = streamText({ ...request, onError: () => {} });
  for await (const part of fullStream) {
    if (part.type === 'text-delta') said.text += part.text;
    if (part.type === 'tool-call') Object.assign(said, { tool: part.toolName, arguments: JSON.stringify(part.input) });
    if (part.type === 'error') throw part.error;
  }
  return said;
}
