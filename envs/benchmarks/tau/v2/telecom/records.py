"""Records of tau2-bench's telecom desk and of the customer's phone, as its data files have them."""

import datetime
import json
from typing import Any, Literal

from pydantic import BaseModel, Field

LineStatus = Literal["Active", "Suspended", "Pending Activation", "Closed"]
BillStatus = Literal["Draft", "Issued", "Awaiting Payment", "Paid", "Overdue", "Disputed"]
AccountStatus = Literal["Active", "Suspended", "Pending Verification", "Closed"]
Network = Literal["none", "2G", "3G", "4G", "5G"]
Signal = Literal["none", "poor", "fair", "good", "excellent"]
Date = datetime.date
Moment = datetime.datetime


class Closed(BaseModel, extra="forbid"):
    """A record without other fields."""


class Address(Closed):
    street: str
    city: str
    state: str
    zip_code: str


class Plan(Closed):
    plan_id: str
    name: str
    data_limit_gb: float
    price_per_month: float
    data_refueling_price_per_gb: float


class Device(Closed):
    device_id: str
    device_type: Literal["phone", "router", "tablet", "watch", "other"]
    model: str
    imei: str | None = None
    is_esim_capable: bool
    activated: bool = False
    activation_date: Moment | None = None
    last_esim_transfer_date: Moment | None = None


class Line(Closed):
    line_id: str
    phone_number: str
    status: LineStatus = "Pending Activation"
    plan_id: str
    device_id: str | None = None
    data_used_gb: float = 0.0
    data_refueling_gb: float = 0.0
    roaming_enabled: bool = False
    contract_end_date: Date | None = None
    last_plan_change_date: Date | None = None
    last_sim_replacement_date: Date | None = None
    suspension_start_date: Date | None = None


class LineItem(Closed):
    description: str
    amount: float
    date: Date
    item_type: str


class Bill(Closed):
    bill_id: str
    customer_id: str
    period_start: Date
    period_end: Date
    issue_date: Date
    total_due: float
    due_date: Date
    line_items: list[LineItem] = Field(default_factory=list)
    status: BillStatus = "Draft"


class PaymentMethod(Closed):
    method_type: Literal["Credit Card", "Debit Card", "PayPal"]
    account_number_last_4: str
    expiration_date: str


class Customer(Closed):
    customer_id: str
    full_name: str
    date_of_birth: str
    email: str
    phone_number: str
    address: Address
    account_status: AccountStatus = "Pending Verification"
    payment_methods: list[PaymentMethod] = Field(default_factory=list)
    line_ids: list[str] = Field(default_factory=list)
    bill_ids: list[str] = Field(default_factory=list)
    created_at: Moment = Moment(2025, 1, 1)
    last_extension_date: Date | None = None
    goodwill_credit_used_this_year: float = 0.0


class Database(Closed):
    plans: list[Plan] = Field(default_factory=list)
    customers: list[Customer] = Field(default_factory=list)
    lines: list[Line] = Field(default_factory=list)
    bills: list[Bill] = Field(default_factory=list)
    devices: list[Device] = Field(default_factory=list)


# ---- the phone ---------------------------------------------------------------------------------------------------


class APNSettings(Closed):
    apn_name: Literal["internet", "broken"] = "internet"
    reset_at_reboot: bool = False
    mms_apn: str | None = "mms"
    mmsc_url: str | None = "http://mms.carrier.com/mms/wapenc"
    mms_proxy: str | None = None
    mms_port: int | None = None


class VpnDetails(Closed):
    server_address: str | None = None
    protocol: str | None = None
    server_performance: Literal["unknown", "poor", "fair", "good", "excellent"] = "unknown"


class AppPermissions(Closed):
    sms: bool = False
    storage: bool = False
    phone: bool = False
    network: bool = False


class AppStatus(Closed):
    app_name: str
    permissions: AppPermissions = Field(default_factory=AppPermissions)


def _apps() -> dict[str, AppStatus]:
    messaging = AppPermissions(sms=True, storage=True, phone=True)
    browser = AppPermissions(network=True, storage=True)
    return {
        "messaging": AppStatus(app_name="messaging", permissions=messaging),
        "browser": AppStatus(app_name="browser", permissions=browser),
    }


class Phone(Closed):
    sim_card_status: Literal["active", "missing", "locked_pin", "locked_puk"] = "active"
    sim_card_missing: bool = False
    airplane_mode: bool = False
    network_signal_strength: Signal = "good"
    network_technology_connected: Network = "5G"
    network_connection_status: Literal["connected", "searching", "no_service", "emergency_only"] = "connected"
    battery_level: int = 80
    data_enabled: bool = True
    roaming_enabled: bool = False
    network_mode_preference: Literal["4g_5g_preferred", "4g_only", "3g_only", "2g_only"] = "4g_5g_preferred"
    active_apn_settings: APNSettings = Field(default_factory=APNSettings)
    wifi_enabled: bool = False
    wifi_connected: bool = False
    wifi_ssid: str | None = None
    wifi_signal_strength: Signal = "none"
    wifi_calling_enabled: bool = False
    wifi_calling_mms_over_wifi: bool = False
    data_saver_mode: bool = False
    vpn_enabled_setting: bool = False
    vpn_connected: bool = False
    vpn_details: VpnDetails | None = None
    app_statuses: dict[str, AppStatus] = Field(default_factory=_apps)


class PaymentRequest(Closed):
    bill_id: str
    amount_due: float
    paid: bool = False


def _reception() -> dict[Network, Signal]:
    return {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"}


class Surroundings(Closed):
    name: str | None = None
    phone_number: str | None = None
    is_abroad: bool = False
    roaming_allowed: bool = False
    signal_strength: dict[Network, Signal] = Field(default_factory=_reception)
    mobile_data_usage_exceeded: bool = False
    line_active: bool = True
    payment_request: PaymentRequest | None = None


class UserDatabase(Closed):
    device: Phone = Field(default_factory=Phone)
    surroundings: Surroundings = Field(default_factory=Surroundings)


def plain(record: BaseModel) -> Any:
    """A record as JSON data, with dates as the original writes them: 2025-02-01, or 2025-02-01 10:30:00."""
    return json.loads(json.dumps(record.model_dump(), default=str))
