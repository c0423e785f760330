import { type FileHandle, stat } from 'node:fs/promises'

/** What a command of root makes belongs to whom its folder belongs to, so that the service can go on with it. */
export async function giveToOwnerOf(folder: string, file: FileHandle): Promise<void> {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = await stat(folder)
  await file.chown(uid, gid)
}
