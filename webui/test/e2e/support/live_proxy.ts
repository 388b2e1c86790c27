// Stands between the page and the live socket of the server: a test sees, holds, changes, delays and
// drops messages, and cuts the connection.
import type { PageFixture } from './page_fixture';

export type Message = string | Buffer;

export interface LiveProxy {
  // Called for each message of the server, in order. It passes on what the page gets.
  onMessage: (message: Message, pass: (message: Message) => void) => void;
  cut(): void; // ends the connection
  readonly connectedMs: readonly number[]; // when the page connected
  readonly messages: number; // of the server, so far
  readonly subscribedTo: readonly string[]; // sessions, as the server has answered
}

// To be installed before the page connects.
export async function proxyLive(fixture: PageFixture): Promise<LiveProxy> {
  fixture.spoilPage();
  const connectedMs: number[] = [];
  let end = (): void => undefined;
  const subscribedTo: string[] = [];
  let messages = 0;
  const proxy: LiveProxy = {
    get messages() {
      return messages;
    },
    onMessage: (message, pass) => {
      pass(message);
    },
    cut: () => {
      end();
    },
    connectedMs,
    subscribedTo,
  };
  await fixture.page.routeWebSocket(/\/api\/v1\/live\?/, (client) => {
    connectedMs.push(performance.now());
    const server = client.connectToServer();
    let isOpen = true;
    end = () => {
      isOpen = false;
      void client.close({ code: 4000 });
      void server.close({ code: 4000 });
    };
    client.onMessage((message) => {
      if (isOpen) server.send(message);
    });
    server.onMessage((batch) => {
      for (const message of messagesOf(batch)) {
        messages += 1;
        if (typeof message === 'string' && typeOf(message) === 'subscribed')
          subscribedTo.push((JSON.parse(message) as { session: string }).session);
        proxy.onMessage(message, (passed) => {
          if (isOpen) client.send(passed);
        });
      }
    });
  });
  return proxy;
}

// The server sends the text messages of a turn as one list.
const messagesOf = (batch: Message): Message[] =>
  typeof batch === 'string'
    ? (JSON.parse(batch) as object[]).map((message) => JSON.stringify(message))
    : [batch];

export const typeOf = (message: Message): string =>
  typeof message === 'string' ? (JSON.parse(message) as { type: string }).type : 'frame';
