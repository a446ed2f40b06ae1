"""The session of an episode: one WebSocket, on which each message gets one answer within a time.

A connection that broke a rule or was late is closed, for what came on it later would be taken for the next answer.
"""

import contextlib
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from manyturn.envs.contract.registration.env_registry import OutsideLost
from manyturn.envs.contract.websocket_redirects import SingleConnection
from manyturn.envs.openenv.address import TOKEN, Address
from manyturn.envs.openenv.faults import ActionRefused, BadAnswer, fault_of, short

_MOST_BYTES = 32 * 2**20  # of one message from the server
_TO_CONNECT = 10.0  # seconds
_TO_CLOSE = 1.0


class Connection:
    """A session that is open. Raises OutsideLost if the server cannot be reached.

    Args:
        address: of the server.
        seconds: that each answer may take.
    """

    def __init__(self, address: Address, seconds: float):
        self._seconds, self._stack = seconds, contextlib.ExitStack()
        # websockets names a class where anything that makes a connection does
        once: Any = SingleConnection(ClientConnection)
        try:
            opened = connect(
                address.socket,
                additional_headers=address.headers,
                compression=None,  # a few bytes could unfold to any number
                max_size=_MOST_BYTES,
                open_timeout=min(seconds, _TO_CONNECT),
                close_timeout=_TO_CLOSE,
                ping_interval=None,  # a server whose environment thinks does not answer to pings, and is not gone
                proxy=None if address.is_here else True,
                create_connection=once,
            )
            self._socket = self._stack.enter_context(opened)
        except InvalidStatus as error:
            status = error.response.status_code
            if 300 <= status < 400:  # an older websockets asks for no second connection
                raise OutsideLost(f"{address.socket} sends us on to another address, which is not followed") from None
            fix = f": set {TOKEN} to the server's token" if status in (401, 403) else ""
            raise OutsideLost(f"{address.socket} refused the session with status {status}{fix}") from None
        except (OSError, WebSocketException, EOFError) as error:
            raise OutsideLost(f"{address.socket} cannot be reached: {_reason(error)}") from None

    def ask(self, kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The data of the observation that answers a message.

        Raises:
            ActionRefused: it is no action; the session goes on.
            OutsideLost, ServerRaised, BadAnswer: the session is closed.
        """
        try:
            with contextlib.suppress(ConnectionClosed):  # a server that is full says so, and hangs up unasked
                self._socket.send(json.dumps({"type": kind, "data": data}))
            answer = _read(self._socket.recv(timeout=self._seconds))
            if answer["type"] == "error":
                raise fault_of(answer["data"], kind == "step")
            if answer["type"] != "observation" or not isinstance(answer["data"], Mapping):
                raise BadAnswer(f"the server answered {kind} with {short(answer)}")
            return answer["data"]
        except ActionRefused:
            raise
        except TimeoutError:
            self.close()
            late = f"no answer to {kind} within {self._seconds:g} s: --env.args.timeout gives more"
            raise OutsideLost(late) from None
        except (ConnectionClosed, OSError) as error:
            self.close()
            raise OutsideLost(f"the session broke off in {kind}: {_reason(error)}") from None
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """End the session; the server ends the episode with it."""
        with contextlib.suppress(ConnectionClosed, OSError):
            self._socket.send('{"type": "close"}')
        self._stack.close()


def _read(message: str | bytes) -> dict[str, Any]:
    """A message of the server. Raises BadAnswer."""
    try:
        answer = json.loads(message, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"the server sent no JSON: {short(message)}") from error
    if not isinstance(answer, dict) or not isinstance(answer.get("type"), str) or "data" not in answer:
        raise BadAnswer(f"the server sent a message without type and data: {short(answer)}")
    return answer


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _reason(error: Exception) -> str:
    return short(str(error) or type(error).__name__)
