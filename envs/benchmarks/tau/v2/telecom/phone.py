"""The customer's phone in tau2-bench's telecom: 30 tools, and what sets tasks up and judges them.

Rules, messages and quirks are the original's (src/tau2/domains/telecom/user_tools.py, MIT), with two exceptions. A VPN
that a task has broken stays slow within its episode alone, where the original breaks it for the whole process. And a
network mode that is no text, or access point settings that are no object, change nothing before they are refused.
"""

from typing import Any

from manyturn.envs.benchmarks.tau.database import Database, Record
from manyturn.envs.benchmarks.tau.v2.telecom.phone_display import (
    ADVICE,
    SIM_TEXTS,
    allowed,
    network_status,
    speed_test,
    status_bar,
    vpn_text,
)
from manyturn.envs.benchmarks.tau.v2.telecom.records import APNSettings, VpnDetails

MODES = {"4g_5g_preferred": "5G", "4g_only": "4G", "3g_only": "3G", "2g_only": "2G"}
PERMISSIONS = ("sms", "storage", "phone", "network")
NO_WIFI = {"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"}
OFFLINE = {
    "network_connection_status": "no_service",
    "network_technology_connected": "none",
    "network_signal_strength": "none",
}


class TelecomUserTools:
    """The customer's tools; ``WRITES`` change the phone, ``SET_UP`` and methods ``assert_...`` are for tasks alone.

    Args:
        db: of one episode, with the table ``phone`` of the records ``device`` and ``surroundings``.
    """

    WRITES = frozenset(
        "set_network_mode_preference toggle_airplane_mode reseat_sim_card toggle_data toggle_roaming "
        "toggle_data_saver_mode set_apn_settings reset_apn_settings toggle_wifi toggle_wifi_calling connect_vpn "
        "disconnect_vpn grant_app_permission reboot_device make_payment".split()
    )
    SET_UP = frozenset(
        "set_user_info set_user_location turn_airplane_mode_on turn_airplane_mode_off unseat_sim_card lock_sim_card "
        "turn_data_on turn_data_off turn_roaming_on turn_roaming_off turn_data_saver_mode_on turn_data_saver_mode_off "
        "break_apn_settings break_apn_mms_setting set_wifi_calling break_vpn remove_app_permission "
        "simulate_network_search".split()
    )

    def __init__(self, db: Database):
        self.db = db
        self._vpn = VpnDetails(server_address="192.168.1.1", protocol="OpenVPN", server_performance="excellent")

    @property
    def device(self) -> Record:
        """To be read only."""
        return self.db["phone"]["device"]

    @property
    def surroundings(self) -> Record:
        """To be read only."""
        return self.db["phone"]["surroundings"]

    def _set(self, **changes: Any) -> None:
        self.db["phone"].edit("device").update(changes)

    def surround(self, **changes: Any) -> None:
        """Change what is around the phone, if it is not so already."""
        if any(self.surroundings[name] != value for name, value in changes.items()):
            self.db["phone"].edit("surroundings").update(changes)

    def _with_bar(self, text: str) -> str:
        return f"{text}\nStatus Bar: {status_bar(self.device)}"

    def _switch(self, name: str, title: str, *, search: bool) -> str:
        self._set(**{name: not self.device[name]})
        if search:
            self.simulate_network_search()
        return self._with_bar(f"{title} is now {_on(self.device[name])}.")

    # ---- the network ----------------------------------------------------------------------------------------

    def check_status_bar(self) -> str:
        """Read the phone's status bar: signal, network, mobile data, Wi-Fi and battery."""
        return f"Status Bar: {status_bar(self.device)}"

    def check_network_status(self) -> str:
        """Read the phone's connections: airplane mode, SIM card, signal, network, mobile data, roaming and Wi-Fi."""
        return network_status(self.device, self._sim())

    def check_network_mode_preference(self) -> str:
        """Read which kinds of network the phone prefers."""
        return f"Network Mode Preference: {self.device['network_mode_preference']}"

    def set_network_mode_preference(self, mode: str) -> str:
        """Choose which kinds of network the phone prefers.

        Args:
            mode: "4g_5g_preferred", "4g_only", "3g_only" or "2g_only".
        """
        if not isinstance(mode, str):
            raise AttributeError(f"'{type(mode).__name__}' object has no attribute 'value'")
        if mode not in MODES:
            options = ", ".join(MODES)
            return self._with_bar(
                f"Failed to set network mode: '{mode}' is not a valid option. Please use one of: {options}"
            )
        self._set(network_mode_preference=mode)
        self.simulate_network_search()
        return self._with_bar(f"Preferred Network Mode set to: {mode}")

    def run_speed_test(self) -> str:
        """Measure how fast the phone loads from the internet."""
        if not self.data_works():
            return "Speed test failed: No Connection."
        speed, word = speed_test(self.device)
        return f"Speed Test Result: {speed:.2f} Mbps ({word}). {ADVICE[word]}"

    def toggle_airplane_mode(self) -> str:
        """Switch airplane mode on or off. On, nothing is sent or received."""
        was_on = self.device["airplane_mode"]
        self._set(airplane_mode=not was_on)
        if not was_on or self.device["wifi_enabled"]:
            self._set(**NO_WIFI)
        if not was_on and self.device["vpn_connected"]:
            self._set(vpn_connected=False, vpn_details=None)
        self.simulate_network_search()
        return self._with_bar(f"Airplane Mode is now {_on(not was_on)}.")

    def data_works(self) -> bool:
        """True if mobile data reaches the internet."""
        device, around = self.device, self.surroundings
        if device["airplane_mode"] or device["network_signal_strength"] == "none":
            return False
        if device["network_connection_status"] == "no_service":
            return False
        if around["is_abroad"] and not (device["roaming_enabled"] and around["roaming_allowed"]):
            return False
        return bool(device["data_enabled"]) and not around["mobile_data_usage_exceeded"]

    def simulate_network_search(self) -> None:
        """Connect to what the phone prefers and the place offers, if nothing stands in the way."""
        device, around = self.device, self.surroundings
        if (
            self._sim() != "active"
            or device["airplane_mode"]
            or device["active_apn_settings"]["apn_name"] == "broken"
            or not around["line_active"]
        ):
            self._set(**OFFLINE)
            return
        network, preferred = MODES[device["network_mode_preference"]], device["network_mode_preference"]
        signal = around["signal_strength"].get(network, "none")
        if preferred == "4g_5g_preferred" and signal == "none":
            network, signal = "4G", around["signal_strength"].get("4G", "none")
        self._set(
            network_connection_status="connected", network_technology_connected=network, network_signal_strength=signal
        )

    # ---- SIM card, data, roaming ----------------------------------------------------------------------------

    def _sim(self) -> str:
        return "missing" if self.device["sim_card_missing"] else self.device["sim_card_status"]

    def check_sim_status(self) -> str:
        """Read whether the SIM card works, is missing or is locked."""
        return SIM_TEXTS[self._sim()]

    def reseat_sim_card(self) -> str:
        """Take the SIM card out and put it in again."""
        self._set(sim_card_missing=False)
        self.simulate_network_search()
        return self._with_bar("SIM card re-seated successfully.")

    def toggle_data(self) -> str:
        """Switch mobile data on or off."""
        return self._switch("data_enabled", "Mobile Data", search=True)

    def toggle_roaming(self) -> str:
        """Switch data roaming on or off: mobile data in networks abroad."""
        return self._switch("roaming_enabled", "Data Roaming", search=True)

    def check_data_restriction_status(self) -> str:
        """Read whether data saver mode limits mobile data."""
        on = self.device["data_saver_mode"]
        return "Data Saver mode is ON (limits data usage)." if on else "Data Saver mode is OFF."

    def toggle_data_saver_mode(self) -> str:
        """Switch data saver mode on or off; on, the phone loads less and more slowly."""
        return self._switch("data_saver_mode", "Data Saver Mode", search=False)

    # ---- APN, Wi-Fi, VPN ------------------------------------------------------------------------------------

    def check_apn_settings(self) -> str:
        """Read the access point settings: name, and address for picture messages."""
        settings = self.device["active_apn_settings"]
        url = settings["mmsc_url"] or "Not Set"
        return (
            f"Current APN Name: {settings['apn_name']}\nMMSC URL (for picture messages): {url}\n"
            "(These are technical settings, usually best left unchanged.)"
        )

    def set_apn_settings(self, apn_settings: dict[str, Any]) -> str:
        """Write the access point settings.

        Args:
            apn_settings: may have apn_name ("internet" or "broken"), reset_at_reboot, mms_apn, mmsc_url, mms_proxy and
                mms_port.
        """
        if not isinstance(apn_settings, dict):
            raise AttributeError(f"'{type(apn_settings).__name__}' object has no attribute 'apn_name'")
        settings = APNSettings(**apn_settings)
        self._set(active_apn_settings=settings.model_dump())
        self.simulate_network_search()
        return self._with_bar(f"APN settings set to: {settings.apn_name}")

    def reset_apn_settings(self) -> str:
        """Have the access point settings reset when the phone is next restarted."""
        self.db["phone"].edit("device")["active_apn_settings"]["reset_at_reboot"] = True
        self.simulate_network_search()
        return self._with_bar("APN settings will reset at reboot.")

    def check_wifi_status(self) -> str:
        """Read whether Wi-Fi is on and which network it is connected to."""
        device = self.device
        if not device["wifi_enabled"]:
            return "Wi-Fi is turned OFF."
        if not device["wifi_connected"]:
            return "Wi-Fi is ON but not connected to any network."
        signal = device["wifi_signal_strength"]
        return f"Wi-Fi is ON and connected to '{device['wifi_ssid']}'. Signal strength: {signal}."

    def toggle_wifi(self) -> str:
        """Switch Wi-Fi on or off."""
        if self.device["airplane_mode"]:
            return self._with_bar("Cannot change Wi-Fi settings while Airplane Mode is ON.")
        if self.device["wifi_enabled"]:
            self._set(**NO_WIFI)
        return self._switch("wifi_enabled", "Wi-Fi", search=False)

    def check_wifi_calling_status(self) -> str:
        """Read whether calls go over Wi-Fi."""
        return f"Wi-Fi Calling is currently turned {_on(self.device['wifi_calling_enabled'])}."

    def toggle_wifi_calling(self) -> str:
        """Switch calls over Wi-Fi on or off."""
        return self._switch("wifi_calling_enabled", "Wi-Fi Calling", search=False)

    def check_vpn_status(self) -> str:
        """Read whether a VPN is connected, and its details."""
        return vpn_text(self.device)

    def connect_vpn(self) -> str:
        """Connect the VPN."""
        if self.device["vpn_connected"]:
            return "VPN already connected."
        self._set(vpn_connected=True, vpn_details=self._vpn.model_dump())
        return self._with_bar("VPN connected successfully.")

    def disconnect_vpn(self) -> str:
        """Disconnect the VPN."""
        if not self.device["vpn_connected"]:
            return self._with_bar("No active VPN connection to disconnect.")
        self._set(vpn_connected=False, vpn_details=None)
        return self._with_bar("VPN disconnected successfully.")

    # ---- apps and picture messages --------------------------------------------------------------------------

    def check_installed_apps(self) -> str:
        """List the apps on the phone."""
        return f"The following apps are installed on the phone: {', '.join(self.device['app_statuses'])}"

    def check_app_status(self, app_name: str) -> str:
        """Read an app's status and permissions.

        Args:
            app_name: such as "messaging".
        """
        app = self.device["app_statuses"].get(app_name)
        if app is None:
            return f"App '{app_name}' not found on this phone."
        granted = [f"   - {name}" for name in allowed(app)]
        rest = [" - Permissions Granted:", *granted] if granted else [" - Permissions: None granted."]
        return "\n".join([f"Status for App: {app_name}", *rest])

    def check_app_permissions(self, app_name: str) -> str:
        """Read what an app is allowed to do.

        Args:
            app_name: such as "messaging".
        """
        app = self.device["app_statuses"].get(app_name)
        if app is None:
            return f"App '{app_name}' not found on this phone."
        granted = ", ".join(allowed(app))
        if not granted:
            return f"App '{app_name}' currently has no permissions granted."
        return f"App '{app_name}' has permission for: {granted}."

    def grant_app_permission(self, app_name: str, permission: str) -> str:
        """Allow an app something.

        Args:
            app_name: such as "messaging".
            permission: in lower case, such as "sms" or "storage".
        """
        installed, permission = app_name in self.device["app_statuses"], permission.lower()
        if not installed:
            return self._with_bar(f"Error. App '{app_name}' not found. Cannot grant permission.")
        if permission not in PERMISSIONS:
            return self._with_bar(
                f"Error. Permission '{permission}' not tracked for app '{app_name}', available permissions: "
                f"{list(PERMISSIONS)}"
            )
        self.db["phone"].edit("device")["app_statuses"][app_name]["permissions"][permission] = True
        return self._with_bar(f"Success. Permission '{permission}' granted to app '{app_name}'.")

    def can_send_mms(self) -> str:
        """Try whether the messaging app can send picture messages."""
        return f"Your messaging app {'can' if self.mms_works() else 'cannot'} send MMS messages."

    def mms_works(self) -> bool:
        device = self.device
        if not self.data_works() or device["network_technology_connected"] == "2G":
            return False
        if device["wifi_calling_enabled"] and device["wifi_calling_mms_over_wifi"]:
            return False
        app = device["app_statuses"].get("messaging")
        if device["active_apn_settings"]["mmsc_url"] is None or app is None:
            return False
        return app["permissions"]["storage"] and app["permissions"]["sms"]

    # ---- restart and payment --------------------------------------------------------------------------------

    def reboot_device(self) -> str:
        """Restart the phone."""
        lines = []
        if self.device["active_apn_settings"]["reset_at_reboot"]:
            lines.append("Resetting APN settings...")
            self._set(active_apn_settings=APNSettings().model_dump())
        lines.append("Restarting network services...")
        self.simulate_network_search()
        return self._with_bar("\n".join(lines))

    def check_payment_request(self) -> str:
        """Read whether the company asks for a payment."""
        request = self.surroundings["payment_request"]
        if request is None:
            return "No payment request has been made."
        return f"You have a payment request for bill {request['bill_id']} of {request['amount_due']} USD."

    def make_payment(self) -> str:
        """Pay the bill that the company asks to be paid."""
        if self.surroundings["payment_request"] is None:
            return "You do not have a payment request."
        request = self.db["phone"].edit("surroundings")["payment_request"]
        request["paid"] = True
        return f"Payment of {request['amount_due']} USD has been made for bill {request['bill_id']}."

    # ---- tasks: set-up --------------------------------------------------------------------------------------

    def set_user_info(self, name: str, phone_number: str) -> None:
        self.surround(name=name, phone_number=phone_number)

    def set_user_location(self, abroad: bool) -> None:
        self.surround(is_abroad=abroad)

    def _turn(self, name: str, *, on: bool) -> None:
        self._set(**{name: on})
        self.simulate_network_search()

    def turn_airplane_mode_on(self) -> None:
        self._turn_airplane_mode(on=True)

    def turn_airplane_mode_off(self) -> None:
        self._turn_airplane_mode(on=False)

    def _turn_airplane_mode(self, *, on: bool) -> None:
        self.toggle_airplane_mode()
        if self.device["airplane_mode"] != on:
            self.toggle_airplane_mode()

    def unseat_sim_card(self) -> None:
        self._turn("sim_card_missing", on=True)

    def lock_sim_card(self, mode: str) -> None:
        if mode in ("pin", "puk"):
            self._set(sim_card_status=f"locked_{mode}")
        self.simulate_network_search()

    def turn_data_on(self) -> None:
        self._set(data_enabled=True)

    def turn_data_off(self) -> None:
        self._turn("data_enabled", on=False)

    def turn_roaming_on(self) -> None:
        self._turn("roaming_enabled", on=True)

    def turn_roaming_off(self) -> None:
        self._turn("roaming_enabled", on=False)

    def turn_data_saver_mode_on(self) -> None:
        self._set(data_saver_mode=True)

    def turn_data_saver_mode_off(self) -> None:
        self._set(data_saver_mode=False)

    def break_apn_settings(self) -> None:
        self.db["phone"].edit("device")["active_apn_settings"]["apn_name"] = "broken"
        self.simulate_network_search()

    def break_apn_mms_setting(self) -> None:
        self.db["phone"].edit("device")["active_apn_settings"]["mmsc_url"] = None

    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool | None = None) -> None:
        self._set(wifi_calling_enabled=enabled)
        if mms_over_wifi is not None:
            self._set(wifi_calling_mms_over_wifi=mms_over_wifi)

    def break_vpn(self) -> None:
        self.connect_vpn()
        self._vpn.server_performance = "poor"
        self.db["phone"].edit("device")["vpn_details"]["server_performance"] = "poor"

    def remove_app_permission(self, app_name: str, permission: str) -> None:
        apps = self.db["phone"].edit("device")["app_statuses"]
        if app_name in apps and permission.lower() in PERMISSIONS:
            apps[app_name]["permissions"][permission.lower()] = False

    def ask_payment(self, bill_id: str, amount: float) -> None:
        self.surround(payment_request={"bill_id": bill_id, "amount_due": amount, "paid": False})

    # ---- tasks: judgement -----------------------------------------------------------------------------------

    def assert_airplane_mode_status(self, expected_status: bool) -> bool:
        return self.device["airplane_mode"] == expected_status

    def assert_service_status(self, expected_status: str) -> bool:
        return self.device["network_connection_status"] == expected_status

    def assert_mobile_data_status(self, expected_status: bool) -> bool:
        return self.data_works() == expected_status

    def assert_mobile_roaming_status(self, expected_status: bool) -> bool:
        return self.device["roaming_enabled"] == expected_status

    def assert_mobile_data_saver_mode_status(self, expected_status: bool) -> bool:
        return self.device["data_saver_mode"] == expected_status

    def assert_internet_speed(self, expected_speed: float, expected_desc: str | None = None) -> bool:
        speed, word = speed_test(self.device) if self.data_works() else (0.0, "No Connection")
        return speed >= expected_speed and (expected_desc is None or word.lower() == expected_desc.lower())

    def assert_internet_not_excellent(self) -> bool:
        return not self.data_works() or speed_test(self.device)[1] != "Excellent"

    def assert_can_send_mms(self, expected_status: bool) -> bool:
        return self.mms_works() == expected_status

    def assert_mobile_data_usage_exceeded(self, expected_status: bool) -> bool:
        return self.surroundings["mobile_data_usage_exceeded"] == expected_status


def _on(state: bool) -> str:
    return "ON" if state else "OFF"


_NOT_TOOLS = TelecomUserTools.SET_UP | {"device", "surroundings", "surround", "data_works", "mms_works", "ask_payment"}
TOOLS = tuple(
    name
    for name in vars(TelecomUserTools)
    if name.islower() and not name.startswith(("_", "assert_")) and name not in _NOT_TOOLS
)
