import { constants, type FileHandle, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { giveToOwnerOf } from '../owner.ts'

/** A file that rows are appended to; or a FIFO, which cannot be read back. */
export interface SinkFile {
  isFifo: boolean
  /** the last row in it when it was opened, if there is one */
  last: RowName | undefined
  /** whether its path still leads to it, and it is as it was left: not moved away, removed, cut, or written by another */
  isUntouched(): Promise<boolean>
  /** resolves when the text is on the disk; of a FIFO, when the pipe has taken it */
  append(text: string): Promise<void>
  close(): Promise<void>
}

export interface RowName {
  seq: number
  hash: string
}

/** Far more than a row takes, whose parts are bounded (`VALUE_LIMIT`). */
const TAIL_BYTES = 8 * 1024 * 1024
const FULL_PIPE_MS = 20
const LINE_FEED = 10

const { O_RDWR, O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants

/**
 * Opens the file at `path`, or makes it, mode 0600; only ever to append. A last line that was cut off is ended with a
 * line feed: it stays, and is no row.
 *
 * @throws Error of the system; ENXIO for a FIFO that nobody reads
 */
export async function openSinkFile(path: string): Promise<SinkFile> {
  const found = await stat(path).catch(unlessMissing)
  const isFifo = found?.isFile() === false
  // Without O_NONBLOCK, opening a FIFO would wait for its reader, and a write to a full one for its end.
  const flags = O_APPEND | O_NONBLOCK | (isFifo ? O_WRONLY : O_RDWR | O_CREAT)
  const handle = await open(path, flags, 0o600)
  try {
    if ((await handle.stat()).isFile() === isFifo) throw new Error('another file took its place while it was opened')
    if (found === undefined) {
      await giveToOwnerOf(dirname(path), handle)
      await syncFolder(dirname(path))
    }
    return isFifo ? fifoOver(handle) : await fileOver(path, handle)
  } catch (error) {
    await handle.close()
    throw error
  }
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().finally(() => folder.close())
}

function fifoOver(handle: FileHandle): SinkFile {
  let isClosed = false
  return {
    isFifo: true,
    last: undefined,
    isUntouched: async () => true,
    append: (text) => writeAll(handle, Buffer.from(text), () => isClosed),
    close() {
      isClosed = true
      return handle.close()
    },
  }
}

async function fileOver(path: string, handle: FileHandle): Promise<SinkFile> {
  const { dev, ino, size } = await handle.stat()
  let end = size
  const append = async (text: string): Promise<void> => {
    const bytes = Buffer.from(text)
    await writeAll(handle, bytes, () => false)
    await handle.sync()
    end += bytes.length
  }
  const tail = await readTail(handle, size)
  const isCut = tail.length > 0 && tail.at(-1) !== LINE_FEED
  // Also syncs what a process that was killed has left.
  await append(isCut ? '\n' : '')
  return {
    isFifo: false,
    last: lastRow(tail),
    async isUntouched() {
      const now = await stat(path).catch(unlessMissing)
      return now !== undefined && now.dev === dev && now.ino === ino && now.size === end
    },
    append,
    close: () => handle.close(),
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer, isClosed: () => boolean): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += (await handle.write(bytes, written)).bytesWritten
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || isClosed()) throw error
      await Bun.sleep(FULL_PIPE_MS)
    }
  }
}

async function readTail(handle: FileHandle, size: number): Promise<Buffer> {
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES))
  for (let read = 0; read < tail.length; ) {
    const { bytesRead } = await handle.read(tail, read, tail.length - read, size - tail.length + read)
    if (bytesRead === 0) throw new Error('the file was cut while it was read')
    read += bytesRead
  }
  return tail
}

/** The last line that is a whole row: behind it there may be what was cut off. */
function lastRow(tail: Buffer): RowName | undefined {
  const lines = tail.toString().split('\n')
  for (const line of lines.reverse()) {
    const row = rowIn(line)
    if (row !== undefined) return row
  }
  return undefined
}

function rowIn(line: string): RowName | undefined {
  if (!line.startsWith('{"kind":"row",')) return undefined
  try {
    const { seq, hash } = JSON.parse(line) as RowName
    return Number.isSafeInteger(seq) && typeof hash === 'string' ? { seq, hash } : undefined
  } catch {
    return undefined
  }
}
