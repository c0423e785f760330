import { GatehouseError, invalidField } from '../errors.ts'
import { parseStrict, type StrictJson } from '../json.ts'

/** Fatal: bytes that are not UTF-8 are refused, not replaced. The BOM is kept, and so refused by the JSON parser. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i

/**
 * Reads a JSON body (HT-2). An empty body is `{}`: some clients send one with `content-type: application/json`.
 *
 * @param limitBytes size above which the answer is 413
 * @throws GatehouseError `unsupported_media_type`, `payload_too_large`, `invalid`
 */
export async function readJson(request: Request, limitBytes: number): Promise<StrictJson> {
  const bytes = await readBytes(request, limitBytes)
  if (bytes.length === 0) return { value: {}, hasBigIntegers: false }
  const type = request.headers.get('content-type')
  if (type !== 'application/json' && (type === null || !JSON_TYPE.test(type)))
    throw new GatehouseError('unsupported_media_type', 'send the body as content-type: application/json (UTF-8)')
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw invalidField('', 'the body is not valid UTF-8')
  }
  return parseStrict(text)
}

/** No more than the limit is ever held. A client that breaks off is no failure of ours, so it is no 500 in the log. */
async function readBytes(request: Request, limitBytes: number): Promise<Uint8Array> {
  const length = request.headers.get('content-length')
  if (Number(length) > limitBytes) throw tooLarge(limitBytes)
  try {
    if (length !== null) return await request.bytes()
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of request.body ?? []) {
      size += chunk.length
      if (size > limitBytes) throw tooLarge(limitBytes)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  } catch (error) {
    if (error instanceof GatehouseError) throw error
    throw invalidField('', 'the body could not be read to its end')
  }
}

const tooLarge = (limitBytes: number): GatehouseError =>
  new GatehouseError('payload_too_large', `the body is larger than ${limitBytes} bytes, the limit of this path`)
