import type { LoadedConfig } from '../config/load.ts'
import { parseReference } from '../config/references.ts'
import { type MasterKeys, newMasterKeyLine, readMasterKeys } from '../crypto/master-key.ts'
import { appendMasterKey, dropMasterKeys, withMasterKeyFile } from '../crypto/master-key-file.ts'
import type { Batch } from '../keyring/data-key.ts'
import { EXIT, StartError } from '../start-error.ts'
import { type AdminCall, withAdmin } from './admin-socket.ts'
import { type Call, defineCommand } from './command.ts'
import { loadFor } from './config.ts'

export const masterKeyNew = defineCommand({
  name: 'master-key new',
  summary: 'Print a fresh line for the master key source; changes nothing.',
  details: 'For sources other than files: add the line as the last one, then run rotate-master-key.',
  flags: {},
  async run({ io }: Call) {
    io.out(newMasterKeyLine())
    return undefined
  },
})

export const rotateMasterKey = defineCommand({
  name: 'rotate-master-key',
  summary: 'Seal the keyring with a new master key; API keys and everything else stay as they are.',
  details:
    'A key file gets a new line. To other sources you add the line that master-key new prints. Works beside a running server, which goes on undisturbed; started again it needs the new line.',
  flags: { 'drop-old': { description: 'remove the lines that are not needed any more' } },
  async run(call) {
    const loaded = loadFor(call)
    const reference = parseReference(loaded.config.master_key.source)
    const path = reference?.kind === 'file' ? reference.name : undefined
    const rotate = () => withAdmin(loaded, call.io, (admin) => rotated(loaded, admin, path, call.flags['drop-old']))
    // Read first: the message about a missing file is better than that of its lock.
    masterKeysIn(loaded)
    const done = await (path === undefined ? rotate() : withMasterKeyFile(path, rotate))
    if (call.flags.json) call.io.out(`${JSON.stringify(done)}\n`)
    else {
      call.io.out(`the keyring is sealed with ${done.id}\n`)
      if (done.dropped.length > 0)
        call.io.err(`${path === undefined ? 'not needed any more' : 'removed'}: ${done.dropped.join(', ')}\n`)
    }
    return undefined
  },
})

async function rotated(loaded: LoadedConfig, admin: AdminCall, path: string | undefined, dropsOld: boolean) {
  const before = await admin('master-key.in-use', {})
  const isLastInUse = () => before.includes(masterKeysIn(loaded).at(-1)?.id ?? '')
  // A rotation that was broken off may have left its line.
  if (isLastInUse() && path !== undefined) appendMasterKey(path)
  if (isLastInUse())
    throw new StartError(
      'NO_NEW_MASTER_KEY',
      EXIT.data,
      'the last line of master_key.source is the key in use',
      'add the line that gatehouse master-key new prints as its last line',
    )
  const keys = masterKeysIn(loaded)
  const { id } = await admin('master-key.rotate', { masterKeys: revealed(keys) })
  if (!dropsOld) return { id, dropped: [] }
  const inUse = await admin('master-key.in-use', {})
  const dropped = keys.map((key) => key.id).filter((each) => !inUse.includes(each))
  if (path !== undefined && dropped.length > 0) dropMasterKeys(path, dropped)
  return { id, dropped }
}

export const masterKeysIn = ({ config, environment }: LoadedConfig): MasterKeys =>
  readMasterKeys(config.master_key.source, environment.reveal())

/** For the admin socket: the server may be unable to read the source. */
export const revealed = (keys: MasterKeys) =>
  keys.map(({ id, bytes }) => ({ id, key: Buffer.from(bytes.reveal()).toString('base64') }))

/** Nodes that did not know of the new key yet may have used the old one during one pass, hardly during so many. */
const MOST_PASSES = 10

export const rotateDataKey = defineCommand({
  name: 'rotate-data-key',
  summary: 'Seal all stored secrets with a new data key.',
  details: 'Works beside a running server. Broken off, it goes on where it was when it is run again.',
  flags: {},
  async run(call) {
    const loaded = loadFor(call)
    const done = await withAdmin(loaded, call.io, async (admin) => {
      const { id, isResumed } = await admin('data-key.begin', { masterKeys: revealed(masterKeysIn(loaded)) })
      if (isResumed) call.io.err('going on with the rotation that was broken off\n')
      const counts = await resealAll(admin)
      await admin('data-key.finish', {})
      return { id, ...counts }
    })
    if (call.flags.json) call.io.out(`${JSON.stringify(done)}\n`)
    else call.io.out(`${done.id}: ${done.resealed} values sealed anew, ${done.opened} opened and checked\n`)
    return undefined
  },
})

/** Pass after pass, until one has opened all values and found each under the new key. */
async function resealAll(admin: AdminCall): Promise<{ opened: number; resealed: number }> {
  let resealed = 0
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const found = await onePass(admin)
    if (found.unopened.length > 0) throw unopened(found.unopened)
    resealed += found.resealed
    if (found.resealed === 0) return { opened: found.opened, resealed }
  }
  throw new StartError(
    'DATA_KEY_IN_USE',
    EXIT.unavailable,
    'other nodes still seal with the old data key',
    'run this again when all nodes are up to date',
  )
}

/** After each batch that was written: the commits of all in a row would show in the slowest renders. */
const REST_MS = 150

async function onePass(admin: AdminCall): Promise<Omit<Batch, 'next'>> {
  const sum = { opened: 0, resealed: 0, unopened: [] as string[] }
  for (let after: Batch['next'] | undefined; after !== null; ) {
    const { next, ...batch }: Batch = await admin('data-key.reseal', after === undefined ? {} : { after })
    sum.opened += batch.opened
    sum.resealed += batch.resealed
    sum.unopened.push(...batch.unopened)
    after = next
    if (batch.resealed > 0) await Bun.sleep(REST_MS)
  }
  return sum
}

const unopened = (places: string[]): StartError =>
  new StartError(
    'DATA_UNREADABLE',
    EXIT.data,
    `${places.length} stored secrets do not open, all others are under the new key: ${places.slice(0, 10).join(', ')}`,
    'store these anew or delete them, then run this again',
  )
