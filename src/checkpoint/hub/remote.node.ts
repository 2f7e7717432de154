/**
 * The hub's API: which files a revision has, and what one file weighs.
 *
 * @module
 */
import { CheckpointError } from "../../errors.ts";
import { type Subject, subjectName, TransientFailure } from "./failure.ts";
import { type HubClient, readBody, request, withRetries } from "./http.node.ts";
import { isBlobName, isSize, type Listing, parseListing } from "./listing.ts";
import { isCommit } from "./modelId.ts";

/** A file with all that is needed to download it. */
export interface RemoteFile {
  readonly path: string;
  readonly size: number;
  /** Name of its blob, its checksum. */
  readonly blob: string;
}

/** 100,000 files, generously. */
const MAX_LISTING_BYTES = 64 * 1024 * 1024;

/** Asks for the files of a revision and the commit it stands for. */
export async function fetchListing(client: HubClient, subject: Subject): Promise<Listing> {
  const { repository, revision } = subject;
  const url = `${client.endpoint}/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const place = { repository, revision };
  const text = await withRetries(client, place, async () => {
    const answer = await request(client, url, place, { headers: { accept: "application/json" } });
    try {
      return new TextDecoder().decode(await readBody(answer, MAX_LISTING_BYTES, place));
    } finally {
      await answer.close();
    }
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    const remedy = "check HF_ENDPOINT";
    throw new CheckpointError(subjectName(place), `${client.endpoint} answers no JSON`, { remedy, cause });
  }
  const listing = parseListing(json, subjectName(place));
  if (isCommit(revision) && listing.commit !== revision)
    throw new CheckpointError(subjectName(place), `the server sends the commit ${listing.commit}`, {
      remedy: "check HF_ENDPOINT",
    });
  return listing;
}

/** Size and checksum of a listed file, asking for them where the listing does not hold them. */
export async function completeFile(
  client: HubClient,
  subject: Subject,
  listing: Listing,
  path: string,
): Promise<RemoteFile> {
  const listed = listing.files.find((file) => file.path === path);
  if (listed?.size !== undefined && listed.blob !== undefined)
    return { path, size: listed.size, blob: listed.blob };
  const place = { ...subject, file: path };
  return await withRetries(client, place, async () => {
    const url = resolveUrl(client, subject, listing.commit, path);
    const { headers, status, close } = await request(client, url, place, {
      method: "HEAD",
      stopAtOtherHost: true,
    });
    await close();
    const length = headers.get("x-linked-size") ?? (status < 300 ? headers.get("content-length") : null);
    const size = length === null ? Number.NaN : Number(length);
    const etag = headers.get("x-linked-etag") ?? headers.get("etag");
    const blob = etag?.replace(/^W\//, "").replace(/^"|"$/g, "");
    if (!isSize(size) || blob === undefined || !isBlobName(blob))
      throw new TransientFailure("the server tells neither size nor checksum");
    return { path, size, blob };
  });
}

/** Where the hub serves a file. */
export function resolveUrl(client: HubClient, { repository }: Subject, commit: string, path: string): string {
  return `${client.endpoint}/${repository}/resolve/${commit}/${path.split("/").map(encodeURIComponent).join("/")}`;
}
