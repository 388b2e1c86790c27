// A program whose model is spread over the CPU and llama.cpp's RPC server, recorded by `tt attach`: the
// chart of its backends has the sums of the rows in SQL, and other sessions have no such chart.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { readdir, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../patience';
import { AnalyticsPage } from '../support/analytics_page';
import { freePort } from '../support/harness';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

const program = join(dirname(process.env.TT_SERVER ?? ''), 'tt');
let folder = '';
let rpc: ChildProcess | undefined;

async function rpcServer(port: number): Promise<void> {
  const [libexec = ''] = (await readdir('/usr/libexec')).filter((name) => name.endsWith('-linux-gnu')); // prettier-ignore
  const server = `/usr/libexec/${libexec}/llama/bin/ggml-rpc-server`;
  rpc = spawn(server, `-H 127.0.0.1 -p ${port} -d CPU -t 1`.split(' '), { stdio: 'ignore' });
  const isReady = () =>
    new Promise<boolean>((done) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => {
        socket.destroy();
        done(true);
      });
      socket.once('error', () => {
        done(false);
      });
    });
  await vi.waitUntil(isReady, { timeout: PATIENCE_MS, interval: 50 });
}

const fixture = PageFixture.use(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-backends-'));
  const model = await makeModel(folder, 'small');
  const port = await freePort();
  await rpcServer(port);
  const traces = join(folder, 'traces');
  await promisify(execFile)(program, [
    ...`attach -q -o ${traces} -- llama-completion -m ${model} --rpc 127.0.0.1:${port} -ngl 6`.split(' '),
    ...'-p Boats -n 8 --ignore-eos -no-cnv --no-warmup -t 1 --temp 0 -c 512'.split(' '),
  ]); // prettier-ignore
  return [traces, '-m', model];
});
afterAll(async () => {
  rpc?.kill();
  await rm(folder, { recursive: true, force: true });
});

describe('a session of a program with two backends', () => {
  const analytics = new AnalyticsPage(fixture);

  it('has their times and the copies between them in a chart', async () => {
    const { sessions } = await fixture.rest<{ sessions: { id: string }[] }>('sessions');
    expect(sessions.length).toBe(1);
    await fixture.show(sessions[0]?.id ?? '');
    await analytics.open('overview');
    const rows = await analytics.csv('backends');
    const parts = await fixture.sql<(string | number)[]>(
      "SELECT backend || ', ' || phase, sum(coalesce(done_ns, end_ns) - begin_ns), count(*) FROM split GROUP BY 1",
    );
    const copies = await fixture.sql<(string | number)[]>(
      "SELECT from_backend || ' → ' || to_backend || ', ' || phase, sum(end_ns - begin_ns - wait_ns), count(*), sum(size_bytes) FROM split_copy GROUP BY 1",
    );
    expect(parts.rows.length).toBe(4);
    const expected = [...parts.rows, ...copies.rows].map(([name, ns, count, bytes]) => [name, String(ns), String(count), bytes === undefined ? '' : String(bytes)]); // prettier-ignore
    const seen = rows.map((row) => [row.backend, row['time (ns)'], row['parts or copies'], row['bytes (bytes)'] ?? row.bytes]); // prettier-ignore
    expect(seen.toSorted()).toEqual(expected.toSorted());
  });

  it('is the only one with this chart', async () => {
    await fixture.recorded(4);
    await analytics.open('overview');
    await analytics.card('phase_steps').waitFor();
    expect(await analytics.card('backends').count()).toBe(0);
  });
});
