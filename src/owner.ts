import { lchownSync, readdirSync, statSync } from 'node:fs'
import { type FileHandle, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** What a command of root makes belongs to whom its folder belongs to, so that the service can go on with it. */
export async function giveToOwnerOf(folder: string, file: FileHandle): Promise<void> {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = await stat(folder)
  await file.chown(uid, gid)
}

/** The same for all that lies in a folder, when a command has ended. */
export function giveToOwnerOfFolder(folder: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(folder)
  if (uid === 0) return
  for (const name of readdirSync(folder)) lchownSync(join(folder, name), uid, gid)
}
