import { Type } from '@sinclair/typebox'
import { ChatCompletionRequest } from './chat-completion.ts'
import { Nullable } from './common.ts'

/** Tools as a prompt version stores them: render's own rules (spec 2.2), and null, [] or '' for "none". */
const { functions, tools, tool_choice } = ChatCompletionRequest.properties
export const PROMPT_TOOLS = {
  functions: Nullable(Type.Array(functions.items, { maxItems: 128 })),
  tools: Nullable(tools),
  tool_choice: Nullable(Type.Union([tool_choice, Type.Literal('')])),
}
